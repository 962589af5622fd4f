//go:build faultpoints && unix

package main

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"

	"github.com/gominimal/minhost/installer/host"
)

// changeGate counts the changes of this process and kills it right before the one that
// MINHOST_CUT numbers, from 1: no deferred function runs, as after kill -9. With MINHOST_CHANGES set
// it appends each change to the file of that name, one a line. Never part of a release.
func changeGate() host.Gate {
	cut, _ := strconv.ParseInt(os.Getenv("MINHOST_CUT"), 10, 64)
	list := os.Getenv("MINHOST_CHANGES")
	var n atomic.Int64
	return func(change string) error {
		if n.Add(1) == cut {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		if list == "" {
			return nil
		}
		f, err := os.OpenFile(list, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = fmt.Fprintln(f, change)
		return err
	}
}
