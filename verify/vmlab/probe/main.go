// Command probe tries targets again and again from where it is started, and prints one line when
// the outcome of one changes, for tests of what a box may reach at every moment. It is no load
// generator and measures nothing.
//
//	probe NAME=NETWORK:HOST:PORT ...
//	probe lookup NAME		the addresses that Go's own resolver finds
//	probe http ADDRESS:PORT		answers every request; says "up" first
//
// A line is "MILLISECONDS NAME ok" or "MILLISECONDS NAME CAUSE", the time since the epoch.
package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	every = 25 * time.Millisecond
	limit = 250 * time.Millisecond
)

func main() {
	if len(os.Args) == 3 {
		switch os.Args[1] {
		case "lookup":
			end(lookup(os.Args[2]))
		case "http":
			end(serve(os.Args[2]))
		}
	}
	var all sync.WaitGroup
	for _, arg := range os.Args[1:] {
		name, target, ok := strings.Cut(arg, "=")
		network, address, ok2 := strings.Cut(target, ":")
		if !ok || !ok2 {
			fmt.Fprintf(os.Stderr, "probe: %q is not NAME=NETWORK:HOST:PORT\n", arg)
			os.Exit(2)
		}
		all.Go(func() { watch(name, network, address) })
	}
	all.Wait()
}

// end ends the program.
func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// watch never returns.
func watch(name, network, address string) {
	last := ""
	for {
		now := try(network, address)
		if now != last {
			fmt.Printf("%d %s %s\n", time.Now().UnixMilli(), name, now)
			last = now
		}
		time.Sleep(every)
	}
}

// try sends an octet and waits for it to come back.
func try(network, address string) string {
	c, err := net.DialTimeout(network, address, limit)
	if err != nil {
		return cause(err)
	}
	defer c.Close()
	b := []byte{'x'}
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		return cause(err)
	}
	if _, err := c.Write(b); err != nil {
		return cause(err)
	}
	if _, err := c.Read(b); err != nil {
		return cause(err)
	}
	return "ok"
}

func cause(err error) string {
	var errno syscall.Errno
	var slow net.Error
	switch {
	case errors.As(err, &errno):
		return strings.ReplaceAll(errno.Error(), " ", "-")
	case errors.As(err, &slow) && slow.Timeout():
		return "timeout"
	}
	return strings.ReplaceAll(err.Error(), " ", "-")
}
