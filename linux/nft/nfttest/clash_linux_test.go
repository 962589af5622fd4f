package nfttest

import (
	"slices"
	"testing"
)

// Rules of others that set our mark bits are named, packets' and connections'; others are not, nor are
// ours.
func TestMarkClashes(t *testing.T) {
	l := newLab(t)
	l.box(deny())
	clashes := func() []string {
		out, err := l.table.MarkClashes(l.ctx())
		l.must(err)
		return out
	}
	l.run("nft", "add table ip theirs; add chain ip theirs c { type filter hook output priority 0; }")
	t.Cleanup(func() { l.run("nft", "delete table ip theirs") })
	for _, rule := range []string{"meta mark set 0x80000001", "meta mark 0x40000000 counter", "meta mark set meta mark or 0x00ff0000", "ct mark set 0x4000"} {
		l.run("nft", "add rule ip theirs c "+rule)
	}
	if got := clashes(); len(got) != 0 {
		t.Errorf("clashes: %q", got)
	}
	for _, rule := range []string{"meta mark set 0x40000001", "meta mark set meta mark or 0x20000000", "ct mark set 0x18000000"} {
		l.run("nft", "add rule ip theirs c "+rule)
	}
	want := []string{"table ip theirs, chain c sets the mark bits 0x40000000", "table ip theirs, chain c sets the mark bits 0x20000000",
		"table ip theirs, chain c sets the mark bits 0x18000000"}
	if got := clashes(); !slices.Equal(got, want) {
		t.Errorf("clashes: %q", got)
	}
}
