package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/gominimal/minhost/installer/api"
)

// writeJSON writes one indented JSON value and a newline, in ASCII only: a name in it can neither
// move a cursor nor start a control sequence of 8 bits, which encoding/json lets through.
func writeJSON(w io.Writer, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(asciiJSON(b), '\n'))
	return err
}

// writeJSONLine is writeJSON on one line, for streams.
func writeJSONLine(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(asciiJSON(b), '\n'))
	return err
}

// asciiJSON escapes DEL and all that is not ASCII; outside strings JSON has none of it.
func asciiJSON(b []byte) []byte {
	var out bytes.Buffer
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
		case r >= 0x7f:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			out.WriteRune(r)
		}
		b = b[n:]
	}
	return out.Bytes()
}

// writeTable aligns rows under a header. Every cell goes through api.Text; an empty one is "-".
func writeTable(w io.Writer, header []string, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(header, "\t"))
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = shown(cell)
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t"))
	}
	return tw.Flush()
}

// shown is untrusted text for a person: printable, and visible when empty.
func shown(s string) string {
	if s == "" {
		return "-"
	}
	return api.Text(s)
}
