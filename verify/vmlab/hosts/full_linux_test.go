package hosts

import (
	"strings"
	"testing"

	"github.com/gominimal/minhost/verify/vmlab"
)

// TestFullRun: where the services find no room for their state, the one who installs is told so by them, and
// not only that a job of systemd failed.
func TestFullRun(t *testing.T) {
	h := newHost(t, "bookworm")
	h.boot()
	before := h.Snapshot()
	h.Sh("mkdir /run/minhost; mount -t tmpfs -o mode=755,nr_blocks=2 tmpfs /run/minhost")
	r := h.Try(vmlab.Program(vmlab.Minhost), "finalize-install", "--yes", "--operator", vmlab.Runner)
	if r.Status != 1 || !strings.Contains(r.Stderr, "no space left on device") || !strings.Contains(r.Stderr, "finalize-install --undo") {
		t.Errorf("want the cause and what to type: %v", r)
	}
	h.Sh("umount -l /run/minhost")
	h.Must(vmlab.Program(vmlab.Minhost), "finalize-install", "--undo", "--yes")
	h.Sh("rmdir /run/minhost 2>/dev/null || true")
	h.Same(before)
}
