package nfttest

import (
	"strings"
	"testing"

	"github.com/gominimal/minhost/linux/nft"
)

// A kernel that has everything lacks nothing, and trying leaves nothing behind here.
func TestNothingMissing(t *testing.T) {
	l := newLab(t)
	l.must(l.table.Destroy(l.ctx()))
	missing, err := nft.Missing(l.ctx())
	l.must(err)
	if len(missing) > 0 {
		t.Error(strings.Join(missing, "\n"))
	}
	if text := l.run("nft", "list", "ruleset"); strings.Contains(text, "minhost") {
		t.Errorf("left behind:\n%s", text)
	}
}
