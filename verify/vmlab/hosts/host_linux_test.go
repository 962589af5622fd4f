package hosts

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/vmlab"
)

// installed is where finalize-install puts the program.
const installed = "/usr/local/lib/minhost/minhost"

// host is a machine with the outside world that its boxes try to reach.
type host struct {
	*vmlab.Machine
	t testing.TB
	// open is what boxes may reach when they are allowed, shut what no box of these tests may.
	open, shut *vmlab.Server
	names      *vmlab.Names
	last       time.Time
}

// lap logs what the time since the last lap was spent on.
func (h *host) lap(what string) {
	if !h.last.IsZero() {
		h.t.Logf("%-12s %5d ms", what, time.Since(h.last).Milliseconds())
	}
	h.last = time.Now()
}

// newHost makes a machine that is not booted.
func newHost(t testing.TB, suite string) *host {
	t.Helper()
	h := &host{Machine: vmlab.Prepare(t, suite), t: t}
	h.open, h.shut = vmlab.TCP(t, 8080), vmlab.TCP(t, 8081)
	h.names = vmlab.ServeNames(t)
	return h
}

// boot boots it and waits until its names work: its own DNS server has to have been found.
func (h *host) boot() {
	h.t.Helper()
	h.Boot()
	h.eventually(10*time.Second, "a name of the outside world resolves", h.outerNameResolves)
}

func (h *host) outerNameResolves() bool {
	return strings.HasPrefix(h.Try("getent", "ahostsv4", "www.example.com").Stdout, vmlab.Outside)
}

// install installs as root for the account runner.
func (h *host) install() {
	h.t.Helper()
	h.Must(vmlab.Program(vmlab.Minhost), "finalize-install", "--yes", "--operator", vmlab.Runner)
}

// verify wants the installed program to find everything right, seen by root and by the operator.
func (h *host) verify() {
	h.t.Helper()
	h.Must(installed, "verify")
	if r := h.TryAs(vmlab.Runner, installed, "verify"); r.Status != 0 {
		h.t.Errorf("as the operator: %v", r)
	}
}

// run runs a program in a box of the operator to its end.
func (h *host) run(flags []string, args ...string) vmlab.Result {
	h.t.Helper()
	return h.TryAs(vmlab.Runner, append(append([]string{installed, "run"}, flags...), append([]string{"--"}, args...)...)...)
}

// eventually waits until the condition holds, at most that long, and returns how long it took.
func (h *host) eventually(within time.Duration, what string, holds func() bool) time.Duration {
	h.t.Helper()
	start := time.Now()
	for !holds() {
		if time.Since(start) > within {
			h.t.Fatalf("not within %v: %s", within, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(start)
}

// inRange wants the text to be one address of the boxes.
func (h *host) inRange(what, text string) {
	h.t.Helper()
	a, err := netip.ParseAddr(strings.TrimSpace(text))
	if err != nil || !netip.MustParsePrefix("127.0.64.0/24").Contains(a) {
		h.t.Errorf("%s: %q is no address of a box", what, text)
	}
}
