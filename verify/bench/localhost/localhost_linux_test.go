package localhost

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux/belt"
	"github.com/gominimal/minhost/linux/localhost"
	"github.com/gominimal/minhost/verify/netlab"
)

const (
	rounds = 21
	slice  = 2000 // calls
)

// place is where calls are made; taken is processor time, in nanoseconds a call, one for each round.
type place struct {
	name  string
	p     *netlab.Proc
	taken map[string][]float64
}

// BenchmarkLocalhost prints the median of each call in each place, and the ratio to a host without programs.
func BenchmarkLocalhost(b *testing.B) {
	for b.Loop() {
		tree := netlab.Tree(b)
		fd, err := tree.BoxesFD()
		must(b, err)
		root, err := os.Open(tree.Mount().Point)
		must(b, err)
		defer root.Close()
		cookie, err := belt.NetnsCookie()
		must(b, err)
		set, err := localhost.New(fd, int(root.Fd()), tree.Level(), localhost.Fit(localhost.Config{NetnsCookie: cookie}), nil)
		must(b, err)
		leaf := netlab.Leaf(b, "web")
		home := lease.Home{Leaf: leaf.ID(), Address: lease.Unpublished(1), Own: true, UDPWildcards: true}
		attach(b, set, home)
		host := &place{"host", netlab.Start(b, netlab.Spawn{Leaf: netlab.NoLeaf}, "calls"), map[string][]float64{}}
		bare := &place{"host without programs", host.p, map[string][]float64{}}
		box := &place{"box", netlab.Start(b, netlab.Spawn{Leaf: leaf.FD()}, "calls"), map[string][]float64{}}
		space := &place{"namespace", netlab.Start(b, netlab.Spawn{Leaf: netlab.NoLeaf, Cloneflags: syscall.CLONE_NEWNET}, "calls", "lo"), map[string][]float64{}}
		for _, p := range []*place{host, box, space} {
			if got := p.p.Line(); got != "ready" {
				b.Fatalf("%s: %s", p.name, got)
			}
		}
		for range rounds {
			must(b, set.Detach())
			bare.measure(b)
			attach(b, set, home)
			for _, p := range []*place{host, box, space} {
				p.measure(b)
			}
		}
		report(b, bare, host, box, space)
		must(b, set.Detach())
	}
}

// attach attaches, and puts the home again: the maps went with the programs.
func attach(b *testing.B, set *localhost.Set, home lease.Home) {
	b.Helper()
	must(b, set.Apply())
	h, err := set.Homes()
	must(b, err)
	defer h.Close()
	must(b, h.Put(home))
}

func (p *place) measure(b *testing.B) {
	b.Helper()
	for _, verb := range verbs() {
		p.p.Say(fmt.Sprintf("%s %d", verb, slice))
		line := p.p.Line()
		ns, err := strconv.ParseFloat(line, 64)
		if err != nil {
			b.Fatalf("%s: %s: %s", p.name, verb, line)
		}
		p.taken[verb] = append(p.taken[verb], ns/slice)
	}
}

// verbs are what is measured.
func verbs() []string { return []string{"bind", "connect", "getsockname", "datagram"} }

func median(all []float64) float64 {
	s := slices.Sorted(slices.Values(all))
	return s[len(s)/2]
}

func report(b *testing.B, bare *place, others ...*place) {
	b.Helper()
	for _, verb := range verbs() {
		base := median(bare.taken[verb])
		b.Logf("%-12s %-22s %7.0f ns", verb, bare.name, base)
		for _, p := range others {
			m := median(p.taken[verb])
			b.Logf("%-12s %-22s %7.0f ns, %.2f of none", verb, p.name, m, m/base)
			b.ReportMetric(m/base, verb+"-"+p.name)
		}
	}
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
