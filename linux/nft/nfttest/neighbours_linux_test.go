package nfttest

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

func (l *lab) neighbours() string {
	l.Helper()
	all, err := l.table.Neighbours(l.ctx())
	l.must(err)
	return fmt.Sprint(all)
}

// TestNeighbours: firewalls that packets of boxes pass are named, and whether they drop what leaves; our own
// table, and chains that filter something else, are not.
func TestNeighbours(t *testing.T) {
	l := newLab(t)
	l.box(deny())
	theirs := func(script string) {
		t.Helper()
		l.run("nft", script)
	}
	before := l.neighbours()
	theirs("add table ip theirs; add chain ip theirs nat { type nat hook output priority 0; }; add chain ip theirs forw { type filter hook forward priority 0; policy drop; }; add chain ip theirs out { type filter hook output priority 0; }")
	t.Cleanup(func() { theirs("delete table ip theirs") })
	if got := l.neighbours(); got != before {
		t.Errorf("nothing filters boxes: %s, before %s", got, before)
	}
	theirs("add rule ip theirs out udp dport 9 counter")
	if got := l.neighbours(); !strings.Contains(got, "nftables (ip theirs)") || strings.Contains(got, "drops") {
		t.Errorf("a rule in output: %s", got)
	}
	theirs("chain ip theirs out { policy drop; }")
	if got := l.neighbours(); !strings.Contains(got, "nftables (ip theirs), which drops") {
		t.Errorf("policy drop: %s", got)
	}
	theirs("chain ip theirs out { policy accept; }")
}

// TestNeighboursOfIptables: the same for both kinds of iptables.
func TestNeighboursOfIptables(t *testing.T) {
	for program, want := range map[string]string{"iptables-nft": "nftables (ip filter)", "iptables-legacy": "iptables-legacy (filter)"} {
		t.Run(program, func(t *testing.T) {
			path, err := exec.LookPath(program)
			if err != nil {
				t.Skip("SKIP root: no " + program)
			}
			l := newLab(t)
			if out, err := exec.Command(path, "-A", "OUTPUT", "-p", "udp", "--dport", "9", "-j", "ACCEPT").CombinedOutput(); err != nil {
				t.Skipf("SKIP root: no kernel for %s: %s", program, out)
			}
			t.Cleanup(func() { l.run(path, "-F") })
			if got := l.neighbours(); !strings.Contains(got, want) {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}
