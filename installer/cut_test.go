package installer_test

import (
	"maps"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/filestep"
	"github.com/gominimal/minhost/installer/host/hosttest"
)

// mixed are steps on files and on a kernel, in the order that a host has them; the kernel's
// changes ask the gate too.
func mixed(d hosttest.Disk, k *kernel, gate host.Gate) []installer.Step {
	file := func(id installer.ID, path string) installer.Step {
		return filestep.New(d, filestep.Spec{ID: id, Path: path, Marker: "# minhost", Content: []byte("# minhost\n"), Attr: host.Attr{Mode: 0o644}})
	}
	gated := func(id installer.ID) installer.Step {
		s := k.step(id, installer.Boot)
		apply, undo := s.apply, s.undo
		s.apply = func(r *installer.Record) error {
			if err := gate.Pass("switch on " + string(id)); err != nil {
				return err
			}
			return apply(r)
		}
		s.undo = func(r installer.Record) error {
			if err := gate.Pass("switch off " + string(id)); err != nil {
				return err
			}
			return undo(r)
		}
		return s
	}
	return []installer.Step{file("unit", "/etc/minhost/unit"), gated("tree"), gated("table"), file("last", "/etc/minhost/last")}
}

func scenario(t testing.TB) hosttest.Host {
	k := newKernel()
	root := hosttest.Root(t)
	hosttest.Put(t, root, "/var/lib/x", "", 0o644)
	hosttest.Put(t, root, "/etc/hosts", "", 0o644)
	look := func() map[string]string {
		all := hosttest.Snapshot(root)
		for id := range maps.Keys(k.on) {
			all["kernel "+string(id)] = "on"
		}
		return all
	}
	return hosttest.Host{
		Engine: func(gate host.Gate) *installer.Engine {
			d := hosttest.OpenDisk(t, root, gate)
			return installer.New(mixed(d, k, gate), host.NewStore(d, hosttest.JournalPath), "boot-1", nil)
		},
		Snapshot: look,
		Settled:  look,
		Close:    func() { os.RemoveAll(root) },
	}
}

func TestCutEverywhere(t *testing.T) {
	changes := hosttest.CutEverywhere(t, scenario)
	if !strings.Contains(strings.Join(changes, "\n"), "switch on table") || len(changes) < 50 {
		t.Errorf("only these were cut: %q", changes)
	}
}

// TestFullDisk: the n-th write of the journal fails and everything else works. Nothing is done
// that the journal does not know of, and no temporary file stays.
func TestFullDisk(t *testing.T) {
	failures := 0
	for n := 1; ; n++ {
		h := scenario(t)
		before := h.Snapshot()
		writes := 0
		full := hosttest.Fail(syscall.ENOSPC, func(change string) bool {
			if strings.HasPrefix(change, "write ") && strings.HasSuffix(strings.TrimSuffix(change, ".minhost-new"), "journal.json") {
				writes++
				return writes == n
			}
			return false
		})
		_, err := h.Engine(full).Apply(ctx, installer.Options{})
		if err == nil {
			break
		}
		failures++
		if !strings.Contains(err.Error(), "no space left on device") || !strings.Contains(err.Error(), hosttest.JournalPath) {
			t.Errorf("write %d: %v", n, err)
		}
		now := h.Snapshot()
		for p := range now {
			if strings.Contains(p, "minhost-new") {
				t.Errorf("write %d: left %s", n, p)
			}
		}
		if n == 1 && len(hosttest.Diff(before, now)) > 0 {
			t.Errorf("the first write: %q", hosttest.Diff(before, now))
		}
		if err := h.Engine(nil).Undo(ctx); err != nil {
			t.Errorf("write %d: undo: %v", n, err)
		}
		if diff := hosttest.Diff(before, h.Snapshot()); len(diff) > 0 {
			t.Errorf("write %d: after undo: %q", n, diff)
		}
		h.Close()
	}
	// Intent, kept and done for each of four steps, and a note for each of two files.
	if failures != 14 {
		t.Errorf("%d writes failed, want 14", failures)
	}
}
