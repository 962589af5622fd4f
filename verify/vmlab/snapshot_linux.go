package vmlab

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed snapshot.sh
var snapshotScript string

// Snapshot is what an installation may have changed in the machine, a line each: files (owner, mode,
// content), units, links, addresses, routes, rules, cgroups, sockets, processes, and what
// systemd-resolved knows.
func (m *Machine) Snapshot() []string {
	m.t.Helper()
	return strings.Split(strings.TrimSuffix(m.Sh(snapshotScript).Stdout, "\n"), "\n")
}

// Same fails the test when the machine looks different now.
func (m *Machine) Same(before []string) {
	m.t.Helper()
	if diff := Diff(before, m.Snapshot()); len(diff) > 0 {
		m.t.Errorf("the machine is not as it was:\n  %s", strings.Join(diff, "\n  "))
	}
}

// Diff lists the lines that only one of two snapshots has: "-" gone, "+" new.
func Diff(before, now []string) []string {
	var diff []string
	for _, l := range before {
		if !slices.Contains(now, l) {
			diff = append(diff, "- "+l)
		}
	}
	for _, l := range now {
		if !slices.Contains(before, l) {
			diff = append(diff, "+ "+l)
		}
	}
	return diff
}
