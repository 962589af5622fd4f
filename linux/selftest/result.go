package selftest

import (
	"fmt"
	"time"
)

// Outcome is the end of one connection attempt.
type Outcome string

const (
	NotTried  Outcome = ""
	Connected Outcome = "connected"
	// Refused: an error came back at once. A rule of the table answered.
	Refused Outcome = "refused"
	// Silent: nothing came back in time. Packets were dropped, as the belt alone does.
	Silent Outcome = "silent"
	// Failed: the attempt itself could not be made; Error says why.
	Failed Outcome = "failed"
)

// Attempt is one connection attempt of a child.
type Attempt struct {
	Outcome Outcome       `json:"outcome"`
	Error   string        `json:"error,omitempty"`
	Took    time.Duration `json:"took_ns"`
}

// Half names a part of the test.
type Half string

const (
	None    Half = ""
	Control Half = "control"
	Leaf    Half = "leaf"
)

// Result is what was found. Control was made before, After after the attempt from the leaf: only a
// listener that answered both times makes a refusal between them worth something.
type Result struct {
	Control, Leaf, After Attempt
}

// FailedHalf says which half failed; None when boxes are held.
func (r Result) FailedHalf() Half {
	switch {
	case r.Control.Outcome != Connected:
		return Control
	case r.Leaf.Outcome != Refused && r.Leaf.Outcome != Silent:
		return Leaf
	case r.After.Outcome != Connected:
		return Control
	}
	return None
}

// OK tells whether boxes are held.
func (r Result) OK() bool { return r.FailedHalf() == None }

// ByTable tells whether the table refused, not the belt alone.
func (r Result) ByTable() bool { return r.OK() && r.Leaf.Outcome == Refused }

// String is one line for a report.
func (r Result) String() string {
	switch r.FailedHalf() {
	case Control:
		a := r.Control
		if a.Outcome == Connected {
			a = r.After
		}
		return fmt.Sprintf("control connection from outside any box %s: nothing can be said about boxes", a)
	case Leaf:
		return fmt.Sprintf("connection from an unknown box %s: egress control is not effective on this kernel and table", r.Leaf)
	}
	if r.ByTable() {
		return fmt.Sprintf("unknown box %s by the table, host connected", r.Leaf)
	}
	return fmt.Sprintf("unknown box %s: dropped by the belt, the table did not answer; host connected", r.Leaf)
}

func (a Attempt) String() string {
	switch a.Outcome {
	case NotTried:
		return "not tried"
	case Failed:
		return "could not be tried: " + a.Error
	case Silent, Refused, Connected:
		return fmt.Sprintf("%s in %d us", a.Outcome, a.Took.Microseconds())
	}
	return string(a.Outcome)
}
