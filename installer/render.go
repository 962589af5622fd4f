package installer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// PlanSchema is the format of Plan.JSON.
const PlanSchema = "minhost/v1/plan"

// Table renders the plan for people: one line a step, then what is lost and what to type for each
// that is not satisfied, then the verdict.
func (p Plan) Table() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STEP\tSTATE\tWHAT")
	for _, r := range p.Rows {
		state := r.State.String()
		if !r.Required {
			state += " (optional)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.ID, state, printable(r.Describe))
	}
	w.Flush()
	for _, r := range p.Rows {
		if r.State != Satisfied {
			b.WriteString("\n" + explain(r))
		}
	}
	b.WriteString("\n" + p.verdict() + "\n")
	return b.String()
}

func explain(r Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", r.ID, r.State)
	if r.Detail != "" {
		b.WriteString(": " + printable(r.Detail))
	}
	b.WriteByte('\n')
	if r.Loses != "" {
		b.WriteString("  until then: " + printable(r.Loses) + "\n")
	}
	if r.Next != "" {
		b.WriteString("  next: " + printable(r.Next) + "\n")
	}
	for _, f := range r.Files {
		if r.State == Absent || r.State == Drifted {
			fmt.Fprintf(&b, "  writes: %s (mode %04o, %s)\n", printable(f.Path), f.Mode, size(f))
		}
	}
	return b.String()
}

func size(f File) string {
	if f.Content == nil {
		return "sha256 " + f.Hash()
	}
	return fmt.Sprintf("%d bytes", len(f.Content))
}

func (p Plan) verdict() string {
	open := 0
	for _, r := range p.Rows {
		if r.Required && r.State != Satisfied {
			open++
		}
	}
	degraded := len(p.Degraded())
	switch {
	case open > 0:
		return fmt.Sprintf("not finished: %d of %d steps to do", open, len(p.Rows))
	case degraded > 0:
		return fmt.Sprintf("finished, degraded: %d optional steps are missing", degraded)
	}
	return "finished"
}

type planJSON struct {
	Schema   string    `json:"schema"`
	Digest   string    `json:"digest"`
	Finished bool      `json:"finished"`
	Degraded []ID      `json:"degraded"`
	Steps    []rowJSON `json:"steps"`
}

type rowJSON struct {
	ID       ID         `json:"id"`
	Describe string     `json:"describe"`
	Lifetime string     `json:"lifetime"`
	Required bool       `json:"required"`
	State    string     `json:"state"`
	Detail   string     `json:"detail,omitempty"`
	Loses    string     `json:"loses,omitempty"`
	Next     string     `json:"next,omitempty"`
	Private  bool       `json:"private,omitempty"`
	Files    []fileJSON `json:"files,omitempty"`
}

// fileJSON carries the content only where it is text.
type fileJSON struct {
	Path    string  `json:"path"`
	Mode    string  `json:"mode"`
	SHA256  string  `json:"sha256"`
	Content *string `json:"content,omitempty"`
}

// JSON renders the plan for programs, schema PlanSchema, with a newline at its end.
func (p Plan) JSON() ([]byte, error) {
	out := planJSON{Schema: PlanSchema, Digest: p.Digest(), Finished: p.Finished(), Degraded: []ID{}, Steps: []rowJSON{}}
	for _, r := range p.Degraded() {
		out.Degraded = append(out.Degraded, r.ID)
	}
	for _, r := range p.Rows {
		row := rowJSON{ID: r.ID, Describe: r.Describe, Lifetime: r.Lifetime.String(), Required: r.Required,
			State: r.State.String(), Detail: r.Detail, Loses: r.Loses, Next: r.Next, Private: r.Private}
		for _, f := range r.Files {
			row.Files = append(row.Files, fileRow(f))
		}
		out.Steps = append(out.Steps, row)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(out); err != nil {
		return nil, fmt.Errorf("plan as JSON: %w", err)
	}
	return b.Bytes(), nil
}

func fileRow(f File) fileJSON {
	row := fileJSON{Path: f.Path, Mode: fmt.Sprintf("%04o", f.Mode), SHA256: f.Hash()}
	if f.Content != nil && utf8.Valid(f.Content) {
		s := string(f.Content)
		row.Content = &s
	}
	return row
}

// printable is untrusted text on a terminal: printable ASCII, at most 255 octets, all else as
// \xNN, so that no file name can move the cursor or end a comment.
func printable(s string) string {
	const most = 255
	b := escape(s)
	if len(b) > most {
		return b[:most-3] + "..."
	}
	return b
}

func escape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= ' ' && c <= '~' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}
