package filestep_test

import (
	"testing"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/filestep"
	"github.com/gominimal/minhost/installer/host/hosttest"
)

const marker = "# written by minhost"

// files are steps of every kind: new folders, a folder that is there, a file of ours that is
// replaced, one that is identical already, and one without marker.
func files(d hosttest.Disk) []installer.Step {
	text := func(id installer.ID, path, body string, mode uint32) installer.Step {
		return filestep.New(d, filestep.Spec{ID: id, Describe: "write " + path, Path: path, Marker: marker,
			Content: []byte(marker + "\n" + body), Attr: host.Attr{Mode: 0o644}})
	}
	return []installer.Step{
		filestep.New(d, filestep.Spec{ID: "program", Describe: "install the program", Path: "/usr/local/lib/minhost/minhost",
			Content: []byte("\x7fELF new"), Attr: host.Attr{Mode: 0o755}, KeepNothing: true,
			Ours: func(b []byte) bool { return len(b) > 4 && string(b[1:4]) == "ELF" }}),
		text("second", "/usr/local/lib/minhost/second", "x\n", 0o644),
		text("old", "/etc/minhost/old.conf", "new\n", 0o644),
		text("same", "/etc/minhost/same.conf", "same\n", 0o644),
		text("mode", "/etc/minhost/mode.conf", "mode\n", 0o644),
		filestep.New(d, filestep.Spec{ID: "bare", Describe: "no marker", Path: "/var/lib/minhost/bare",
			Content: []byte("1000\n"), Attr: host.Attr{Mode: 0o600}, Private: true}),
	}
}

func before(t testing.TB) func(root string) {
	return func(root string) {
		t.Helper()
		hosttest.Put(t, root, "/etc/minhost/old.conf", marker+"\nold, by an earlier version\n", 0o640)
		hosttest.Put(t, root, "/etc/minhost/same.conf", marker+"\nsame\n", 0o644)
		hosttest.Put(t, root, "/etc/minhost/mode.conf", marker+"\nmode\n", 0o600)
		hosttest.Put(t, root, "/etc/hosts", "127.0.0.1 localhost\n", 0o644)
		hosttest.Put(t, root, "/usr/local/lib/other/lib.so", "not ours", 0o644)
	}
}

func TestCutEverywhere(t *testing.T) {
	changes := hosttest.CutEverywhere(t, hosttest.Files(before(t), files))
	// Fewer changes than this mean that an edge stopped asking the gate.
	if len(changes) < 60 {
		t.Errorf("only %d changes were cut: %q", len(changes), changes)
	}
}
