package answerer

import (
	"strings"
	"testing"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

// TestFirstLookup: the name of a box is answered when its program begins, so that no client keeps an
// early "no such name" for longer than it is true.
func TestFirstLookup(t *testing.T) {
	rig.Wipe(t)
	rig.Install(t)
	t.Cleanup(func() { rig.Must(t, "finalize-install", "--undo", "--yes", "--force") })
	for range 10 {
		r := rig.Cmd{UID: rig.User}.Run(t, "run", "--name", "early", "--egress", "deny", "--",
			"/usr/bin/dig", "+short", "+tries=1", "@127.0.0.1", "early.min.internal")
		if !strings.HasPrefix(r.Stdout, "127.0.64.") {
			t.Fatalf("the first lookup of a box's own name: %v", r)
		}
	}
}
