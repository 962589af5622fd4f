package hosts

import (
	"strings"
	"testing"

	"github.com/gominimal/minhost/verify/vmlab"
)

// TestFullRun: where /run is full the host is prepared all the same; a box whose record cannot be written is
// refused with the cause, and nothing of it is left.
func TestFullRun(t *testing.T) {
	h := newHost(t, "bookworm")
	h.boot()
	before := h.Snapshot()
	h.Sh("mkdir /run/minhost; mount -t tmpfs -o mode=755,nr_blocks=2 tmpfs /run/minhost")
	h.install()
	if r := h.run([]string{"--name", "full", "--egress", "deny"}, "/bin/true"); r.Status != 125 || !strings.Contains(r.Stderr, "no space left on device") {
		t.Errorf("a box without a record: want the cause: %v", r)
	}
	if left := h.Sh("ls /sys/fs/cgroup/system.slice/minhost-tree.service/boxes | grep -c ^b || true").Stdout; strings.TrimSpace(left) != "0" {
		t.Errorf("%s leaves are left of it", left)
	}
	h.Sh("umount -l /run/minhost")
	h.Must(vmlab.Program(vmlab.Minhost), "finalize-install", "--undo", "--yes")
	h.Sh("rmdir /run/minhost 2>/dev/null || true")
	h.Same(before)
}
