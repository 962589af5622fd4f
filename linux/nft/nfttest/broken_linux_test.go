package nfttest

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"
)

// TestDeleteAfterBrokenPut: a Put whose context ends may have reached the kernel; Delete removes it
// all the same.
func TestDeleteAfterBrokenPut(t *testing.T) {
	l := newLab(t)
	b := l.leaf(deny())
	broken := 0
	for i := range 300 {
		ctx, cancel := context.WithCancel(l.ctx())
		timer := time.AfterFunc(rand.N(2*time.Millisecond), cancel)
		if err := l.table.Put(ctx, b.Verdict); err != nil {
			broken++
		}
		timer.Stop()
		cancel()
		l.must(l.table.Delete(l.ctx(), b.Verdict))
		differences, err := l.table.Compare(l.ctx(), nil)
		l.must(err)
		if len(differences) > 0 {
			t.Fatalf("round %d, after %d broken puts: %v", i, broken, differences)
		}
	}
	if broken == 0 {
		t.Error("no Put was broken off")
	}
}
