package selftest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// Child is the other side of Run: the hidden subcommand "selftest-child ADDRESS TIMEOUT". It makes one
// connection, writes the Attempt as one line of JSON and returns the exit status: 0 whenever it could
// write an answer, 2 for wrong arguments.
func Child(args []string, stdout, stderr io.Writer) int {
	if len(args) != 2 {
		fmt.Fprintln(stderr, "selftest-child: want ADDRESS TIMEOUT")
		return 2
	}
	timeout, err := time.ParseDuration(args[1])
	if err != nil {
		fmt.Fprintln(stderr, "selftest-child:", err)
		return 2
	}
	if err := json.NewEncoder(stdout).Encode(attempt(args[0], timeout)); err != nil {
		return 1
	}
	return 0
}

// attempt connects once.
func attempt(address string, limit time.Duration) Attempt {
	start := time.Now()
	c, err := (&net.Dialer{Timeout: limit}).Dial("tcp4", address)
	a := Attempt{Outcome: Connected, Took: time.Since(start)}
	if err == nil {
		c.Close()
		return a
	}
	a.Outcome, a.Error = Failed, err.Error()
	var timeout net.Error
	var syscall *os.SyscallError
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		a.Outcome = Silent
	case errors.As(err, &syscall) && syscall.Syscall == "connect":
		a.Outcome = Refused
	}
	return a
}
