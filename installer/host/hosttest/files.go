package hosttest

import (
	"os"
	"testing"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
)

// JournalPath is where Files keeps the journal, below its root.
const JournalPath = "/var/lib/minhost/journal.json"

// Files is the scenario of steps that change nothing but files below a folder. Before, which may
// be nil, puts there what was on the host already; steps are made anew for each engine.
func Files(before func(root string), steps func(d Disk) []installer.Step) Scenario {
	return func(t testing.TB) Host {
		t.Helper()
		root := Root(t)
		if err := os.MkdirAll(root+"/var/lib", 0o755); err != nil {
			t.Fatal(err)
		}
		if before != nil {
			before(root)
		}
		var open []Disk
		return Host{
			Engine: func(gate host.Gate) *installer.Engine {
				d := OpenDisk(t, root, gate)
				open = append(open, d)
				return installer.New(steps(d), host.NewStore(d, JournalPath), "boot-1", nil)
			},
			Snapshot: func() map[string]string { return Snapshot(root) },
			Settled:  func() map[string]string { return Snapshot(root) },
			Close: func() {
				for _, d := range open {
					d.Close()
				}
				os.RemoveAll(root)
			},
		}
	}
}
