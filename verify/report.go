package verify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/gominimal/minhost/installer/api"
)

// Schema names the JSON form of a report.
const Schema = "minhost/v1/verify"

// State of a row.
type State string

// States, from best to worst. Only Failed makes a host not ready: Warning is worth a look, Unknown
// could not be observed, Degraded is an optional part that this host cannot have.
const (
	OK       State = "ok"
	Unknown  State = "unknown"
	Warning  State = "warning"
	Degraded State = "degraded"
	Failed   State = "failed"
)

var states = []State{OK, Unknown, Warning, Degraded, Failed}

// Row is one fact about the host.
type Row struct {
	// Name is one lower-case word or two, the same for the same fact whoever observed it.
	Name  string `json:"name"`
	State State  `json:"state"`
	// Detail is one line: what was observed.
	Detail string `json:"detail"`
	// Loses is one line: what the operator does without. Next is the command that shows or mends
	// it. Both are empty in a row that is ok.
	Loses string `json:"loses,omitempty"`
	Next  string `json:"next,omitempty"`
}

// Report is what verify found, in the order of its sources.
type Report struct {
	Rows []Row
}

// Ready says whether the host does what was promised. A report without rows proves nothing.
func (r Report) Ready() bool {
	return len(r.Rows) > 0 && r.count(Failed) == 0
}

// ExitStatus is 0 for a host that is ready, else 1.
func (r Report) ExitStatus() int {
	if r.Ready() {
		return 0
	}
	return 1
}

func (r Report) count(s State) int {
	n := 0
	for _, row := range r.Rows {
		if row.State == s {
			n++
		}
	}
	return n
}

// WriteText writes the report for a person: a line a row, below it what is lost and what to type,
// and a closing line.
func (r Report) WriteText(w io.Writer) error {
	var table bytes.Buffer
	tw := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	for _, row := range r.Rows {
		fmt.Fprintf(tw, "%-8s\t%s\t%s\n", row.State, api.Text(row.Name), api.Text(row.Detail))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	lines := strings.SplitAfter(table.String(), "\n")
	for i, row := range r.Rows {
		out := lines[i]
		if row.State != OK && row.Loses != "" {
			out += "          without it: " + api.Text(row.Loses) + "\n"
		}
		if row.State != OK && row.Next != "" {
			out += "          next: " + api.Text(row.Next) + "\n"
		}
		if _, err := io.WriteString(w, out); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, r.verdict())
	return err
}

// verdict is the closing line: counts of the states that occur, and what they mean together.
func (r Report) verdict() string {
	word := "this host is ready"
	if !r.Ready() {
		word = "this host is not ready"
	}
	return word + ": " + r.Summary()
}

// Summary counts the states that occur.
func (r Report) Summary() string {
	var counts []string
	for _, s := range states {
		if n := r.count(s); n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, s))
		}
	}
	if len(counts) == 0 {
		return "nothing was observed"
	}
	return strings.Join(counts, ", ")
}

// MarshalJSON gives the form of Schema.
func (r Report) MarshalJSON() ([]byte, error) {
	rows := r.Rows
	if rows == nil {
		rows = []Row{}
	}
	return json.Marshal(struct {
		Schema string `json:"schema"`
		Ready  bool   `json:"ready"`
		Rows   []Row  `json:"rows"`
	}{Schema, r.Ready(), rows})
}
