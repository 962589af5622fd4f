package localhosttest

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/verify/netlab"
)

// calls runs the matrix in a child and returns what each pair gave.
func calls(t *testing.T, s netlab.Spawn, args ...string) []outcome {
	t.Helper()
	var out []outcome
	p := netlab.Start(t, s, "calls", args...)
	for range pairs() {
		var o outcome
		if err := json.Unmarshal([]byte(p.Line()), &o); err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	p.Stop()
	return out
}

// fields of an outcome in the order of the calls: of two outcomes the first difference counts.
var fields = []string{"server", "server bind", "server bound", "listen", "server name", "client", "client bind", "client bound",
	"connect", "client name", "client peer", "accept", "accepted name", "accepted peer", "send", "request from", "reply", "reply from"}

// TestOracle compares every pair of a server and a client in a box with the same in a network namespace of
// its own. Each difference has a reason (reasons), and each reason that a box has must be met.
func TestOracle(t *testing.T) {
	w := newTown(t)
	oracle := calls(t, netlab.Spawn{Leaf: netlab.NoLeaf, Cloneflags: syscall.CLONE_NEWNET}, "10000", "own")
	for n, v := range []struct {
		name   string
		change func(*lease.Home)
		want   []string
	}{
		{"confined", nil, []string{
			"client bound first", "client of a fixed port", "datagrams to ::", "dialled 127.0.0.2", "fixed port of ::1",
			"IPv6 client of a fixed port", "IPv6 shown as mapped", "localhost is one", "not the own address", "six to mapped"}},
		{"UDP elsewhere", func(h *lease.Home) { h.UDPWildcards = false }, []string{
			"client bound first", "client of a fixed port", "dialled 127.0.0.2", "fixed port of ::1",
			"IPv6 client of a fixed port", "IPv6 shown as mapped", "localhost is one", "not the own address", "six to mapped"}},
		// Wildcards stay: only servers on localhost itself are rewritten.
		{"ingress any", func(h *lease.Home) { h.Open = true }, []string{
			"client of a fixed port", "fixed port of ::1", "IPv6 client of a fixed port", "IPv6 shown as mapped", "localhost is one",
			"not the own address", "six to mapped"}},
		{"shared", func(h *lease.Home) { h.Own = false }, nil},
	} {
		leaf := w.box(byte(10+n), v.change)
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			got := calls(t, netlab.Spawn{Leaf: leaf}, strconv.Itoa(10000+3000*n))
			met := map[string]int{}
			for i, c := range pairs() {
				if d, ok := first(c, oracle[i], got[i]); ok {
					why := reasonFor(d)
					if why == "" {
						t.Errorf("%v: %s: namespace %q, box %q", c, d.field, d.want, d.got)
					}
					met[why]++
				}
			}
			if names := slices.Sorted(maps.Keys(met)); !slices.Equal(names, slices.Sorted(slices.Values(v.want))) {
				t.Errorf("reasons met: %q, want %q", names, v.want)
			}
			t.Logf("%d pairs; differences: %v", len(got), met)
		})
	}
}

// difference is the first one of a pair.
type difference struct {
	pair
	field, want, got string
}

func first(c pair, want, got outcome) (difference, bool) {
	for _, f := range fields {
		if want[f] != got[f] {
			return difference{c, f, want[f], got[f]}, true
		}
	}
	return difference{}, false
}
