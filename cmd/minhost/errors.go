package main

import (
	"errors"
	"fmt"
	"io"
)

// Exit statuses. A verb that answers yes or no (verify, explain, finalize-install --json) exits
// with statusOK or statusNo; run has statuses of its own (125 to 127, the child's, 128+n).
const (
	statusOK    = 0
	statusNo    = 1
	statusUsage = 2 // the command line cannot be used
)

// exitError ends the program with a status. With a nil err nothing more is printed: the verb has
// said what there is to say.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e exitError) Unwrap() error { return e.err }

// hinter is an error that knows what its reader can type next.
type hinter interface{ Hint() string }

// hinted adds the next command to an error.
type hinted struct {
	error
	next string
}

func (h hinted) Hint() string  { return h.next }
func (h hinted) Unwrap() error { return h.error }

// report prints an error once, with its hint, and returns the exit status that it stands for.
func report(w io.Writer, err error) int {
	if err == nil {
		return statusOK
	}
	code := statusNo
	var exit exitError
	if errors.As(err, &exit) {
		code = exit.code
		if exit.err == nil {
			return code
		}
	}
	fmt.Fprintf(w, "minhost: %v\n", err)
	var hint hinter
	if errors.As(err, &hint) && hint.Hint() != "" {
		fmt.Fprintf(w, "next: %s\n", hint.Hint())
	}
	return code
}
