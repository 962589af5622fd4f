package nfttest

import (
	"sync/atomic"
	"testing"

	"github.com/gominimal/minhost/linux/nft"
	"github.com/gominimal/minhost/verify/netlab"
)

// Every refusal is counted; what the token bucket of a noisy box keeps back is not told, and the counters
// say how many that were.
func TestRefusalsAreCounted(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	var events atomic.Uint64
	reader, err := nft.NewReader(64, func(nft.Refused) { events.Add(1) })
	l.must(err)
	defer reader.Close()
	quiet, noisy := l.box(deny()), l.box(deny())
	netlab.InLeaf(l, noisy.FD(), "hammer", o.far()+":80", "300")
	netlab.InLeaf(l, noisy.FD(), "hammer", "127.0.0.1:80", "5")
	netlab.InLeaf(l, quiet.FD(), "hammer", o.far()+":80", "3")
	reader.Drain()
	refused, told, err := l.table.Refusals(l.ctx())
	l.must(err)
	if refused < 308 || told >= refused || told < 43 || told != events.Load() {
		t.Errorf("%d refused, %d told, %d events; want 308, and some kept back", refused, told, events.Load())
	}
	l.same(l.table, verdicts(quiet, noisy)) // counters are no difference
}
