package reboot

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/gominimal/minhost/verify"
)

// Schema names the JSON form of an After.
const Schema = "minhost/v1/after-reboot"

const again = "sudo minhost verify --before-reboot"

// Part is one part of minhost and when it was ready.
type Part struct {
	Name string
	// Since is the time from the start of the kernel.
	Since time.Duration
}

// Now is the host as it is.
type Now struct {
	BootID, Version, Digest string
	Report                  verify.Report
	// ByHand are the steps that somebody applied in this boot, other than the boot itself.
	ByHand []string
	// Parts, or why they are not known.
	Parts   []Part
	NoParts string
}

// After is the outcome.
type After struct {
	Marker Marker
	Parts  []Part
	verify.Report
}

// Compare adds what a reboot should not have changed to the report of now.
func Compare(m Marker, now Now) After {
	rows := []verify.Row{boot(m, now), written(m, now), hands(now)}
	for _, row := range now.Report.Rows {
		if row.State != verify.OK && row.State != verify.Failed && slices.Contains(m.Expect, row.Name) {
			row.Detail = fmt.Sprintf("was ok before the reboot, is %s: %s", row.State, row.Detail)
			row.State = verify.Failed
		}
		rows = append(rows, row)
	}
	for _, name := range m.Expect {
		if !slices.ContainsFunc(now.Report.Rows, func(r verify.Row) bool { return r.Name == name }) {
			rows = append(rows, verify.Row{Name: name, State: verify.Failed, Detail: "was ok before the reboot, was not observed now"})
		}
	}
	return After{m, now.Parts, verify.Report{Rows: append(rows, times(now))}}
}

func boot(m Marker, now Now) verify.Row {
	row := verify.Row{Name: "another boot", State: verify.OK, Detail: fmt.Sprintf("boot %s, expected since %s in boot %s", now.BootID, m.Taken, m.BootID)}
	if m.BootID == now.BootID {
		row.State, row.Detail = verify.Failed, fmt.Sprintf("this is still the boot %s in which the expectation was written (%s)", m.BootID, m.Taken)
		row.Loses, row.Next = "nothing was proved about a reboot", "reboot"
	}
	return row
}

// written compares what the steps write. Another version of the program writes other bytes: that is
// an upgrade, and worth a new marker, not a fault of the boot.
func written(m Marker, now Now) verify.Row {
	row := verify.Row{Name: "program and files", State: verify.OK, Detail: fmt.Sprintf("version %s and what it writes are those of before", now.Version)}
	switch {
	case m.Digest == now.Digest:
	case m.Version != now.Version:
		row.State, row.Next = verify.Warning, again
		row.Detail = fmt.Sprintf("version %s made the expectation, this is %s", m.Version, now.Version)
		row.Loses = "what the other version wrote is not compared"
	default:
		row.State, row.Next = verify.Failed, "minhost finalize-install --show"
		row.Detail = fmt.Sprintf("what the steps write has digest %.12s, had %.12s", now.Digest, m.Digest)
	}
	return row
}

func hands(now Now) verify.Row {
	row := verify.Row{Name: "by itself", State: verify.OK, Detail: "nobody applied a step by hand in this boot"}
	if len(now.ByHand) > 0 {
		row.State, row.Next = verify.Failed, "reboot"
		row.Detail = "applied by hand in this boot: " + strings.Join(now.ByHand, ", ")
		row.Loses = "nobody knows whether the boot alone would have brought them back"
	}
	return row
}

func times(now Now) verify.Row {
	row := verify.Row{Name: "ready after kernel start", State: verify.OK, Detail: join(now.Parts)}
	if len(now.Parts) == 0 {
		row.State, row.Detail = verify.Unknown, now.NoParts
	}
	return row
}

func join(parts []Part) string {
	var words []string
	for _, p := range parts {
		words = append(words, fmt.Sprintf("%s %.2f s", p.Name, p.Since.Seconds()))
	}
	return strings.Join(words, ", ")
}

// WriteLine writes the outcome in one line, for a log.
func (a After) WriteLine(w io.Writer) error {
	word, bad := "ready", []string(nil)
	if !a.Ready() {
		word = "NOT READY"
	}
	for _, r := range a.Rows {
		if r.State == verify.Failed {
			bad = append(bad, r.Name+": "+r.Detail)
		}
	}
	line := "after reboot: " + word + ": " + a.Summary()
	if len(bad) > 0 {
		line += "; " + strings.Join(bad, "; ")
	}
	if len(a.Parts) > 0 {
		line += "; ready after kernel start: " + join(a.Parts)
	}
	_, err := fmt.Fprintln(w, strings.ReplaceAll(line, "\n", " "))
	return err
}

// MarshalJSON gives the form of Schema: that of verify, with the marker and the times.
func (a After) MarshalJSON() ([]byte, error) {
	times := map[string]float64{}
	for _, p := range a.Parts {
		times[p.Name] = p.Since.Seconds()
	}
	rows := a.Rows
	if rows == nil {
		rows = []verify.Row{}
	}
	return json.Marshal(struct {
		Schema string             `json:"schema"`
		Ready  bool               `json:"ready"`
		Marker Marker             `json:"marker"`
		Times  map[string]float64 `json:"seconds_after_kernel_start"`
		Rows   []verify.Row       `json:"rows"`
	}{Schema, a.Ready(), a.Marker, times, rows})
}
