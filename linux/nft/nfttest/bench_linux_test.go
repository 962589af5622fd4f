package nfttest

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/gominimal/minhost/installer/lease"
)

// BenchmarkPutDelete is one box coming and going while 250 others with rules of their own live.
func BenchmarkPutDelete(b *testing.B) {
	l := newLab(b)
	var all []lease.Verdict
	for i := range 250 {
		p := allow(b, fmt.Sprintf("10.0.%d.0/24 443 tcp", i), "192.0.2.0/24 any")
		all = append(all, lease.Verdict{Leaf: uint64(1<<40 + i), Number: uint16(100 + i), Policy: p})
	}
	l.must(l.table.Refill(l.ctx(), all))
	v := lease.Verdict{Leaf: 1 << 41, Number: 7, Address: netip.MustParseAddr("127.0.64.7"), Policy: allow(b, "10.9.9.9 443 tcp")}
	b.Run("put", func(b *testing.B) {
		for i := range b.N {
			v.Leaf, v.Number = uint64(1<<41+i), uint16(i)
			l.must(l.table.Put(l.ctx(), v))
		}
		b.StopTimer()
		l.must(l.table.Refill(l.ctx(), all))
	})
	b.Run("put and delete", func(b *testing.B) {
		for range b.N {
			l.must(l.table.Put(l.ctx(), v))
			l.must(l.table.Delete(l.ctx(), v))
		}
	})
}
