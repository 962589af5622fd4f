package nfttest

import (
	"testing"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/verify/netlab"
)

// A box that lets some boxes in is reached by them when their own rules admit it, on every port, and by
// nobody else's box; one that lets every box in needs their rules all the same.
func TestLetIn(t *testing.T) {
	l := newLab(t)
	api := l.box(deny())
	at := map[string]string{}
	for _, network := range []string{"tcp", "udp"} {
		at[network], _ = netlab.EchoIn(l, netlab.Spawn{Leaf: api.FD()}, network, api.Address.String()+":3000", 0)
	}
	rules := []string{api.Address.String() + " 3000 tcp", api.Address.String() + " 3000 udp"}
	named, stranger, silent := l.box(allow(t, rules...)), l.box(allow(t, rules...)), l.box(deny())
	open := l.box(openEgress())
	put := func(change func(*lease.Verdict)) {
		v := api.Verdict
		change(&v)
		l.must(l.table.Put(l.ctx(), v))
		l.same(l.table, append(verdicts(named, stranger, silent, open), v))
	}
	for _, step := range []struct {
		what    string
		change  func(*lease.Verdict)
		reach   []*box
		refused []*box
	}{
		{"nobody let in", func(*lease.Verdict) {}, nil, []*box{named, stranger, silent, open}},
		{"one", func(v *lease.Verdict) { v.From = []uint16{named.Number} }, []*box{named}, []*box{stranger, silent, open}},
		{"two, one of which has no rule for it", func(v *lease.Verdict) { v.From = []uint16{silent.Number, open.Number} }, []*box{open}, []*box{named, stranger, silent}},
		{"every box", func(v *lease.Verdict) { v.FromEveryBox = true }, []*box{named, stranger, open}, []*box{silent}},
		{"nobody again", func(*lease.Verdict) {}, nil, []*box{named, stranger, silent, open}},
	} {
		t.Run(step.what, func(t *testing.T) {
			put(step.change)
			for network, to := range at {
				for _, b := range step.reach {
					l.reaches(b, network, to)
				}
				for _, b := range step.refused {
					l.refused(b, network, to)
				}
				if o := (netlab.Dial{Network: network, Address: to}.Do()); !o.OK() {
					t.Errorf("this host, %s: %v", network, o)
				}
			}
		})
	}
}
