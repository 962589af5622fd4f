package cells

import (
	"fmt"
	"os"
	"testing"

	"github.com/gominimal/minhost/verify/vmlab"
)

func TestMain(m *testing.M) { os.Exit(vmlab.Main(m, "bookworm-full", "trixie-full", newer)) }

// What cells differ in.
var (
	suites    = []string{"bookworm", "trixie"}
	managers  = []string{"networkd", "NetworkManager", "ifupdown"}
	resolvers = []string{"stub", "without stub", "none"}
	firewalls = []string{"none", "nftables.service", "firewalld", "ufw", "docker.io"}
)

type cell struct{ suite, manager, resolver, firewall string }

func (c cell) String() string {
	return fmt.Sprintf("%s, %s, resolved: %s, firewall: %s", c.suite, c.manager, c.resolver, c.firewall)
}

// all has every pair of two values at least once: 15 cells, since there are 15 of manager and firewall.
func all() []cell {
	var cells []cell
	for m, manager := range managers {
		for f, firewall := range firewalls {
			cells = append(cells, cell{suites[(m+f)%len(suites)], manager, resolvers[(m+f)%len(resolvers)], firewall})
		}
	}
	return cells
}

// TestPairs: no two values are left out together.
func TestPairs(t *testing.T) {
	seen := map[[2]string]bool{}
	for _, c := range all() {
		values := []string{"suite " + c.suite, "manager " + c.manager, "resolver " + c.resolver, "firewall " + c.firewall}
		for i, a := range values {
			for _, b := range values[i+1:] {
				seen[[2]string{a, b}] = true
			}
		}
	}
	n := func(a, b []string) int { return len(a) * len(b) }
	want := n(suites, managers) + n(suites, resolvers) + n(suites, firewalls) + n(managers, resolvers) + n(managers, firewalls) + n(resolvers, firewalls)
	if len(seen) != want {
		t.Errorf("%d pairs of %d: %v", len(seen), want, seen)
	}
	if n := len(all()); n < 12 || n > 16 {
		t.Errorf("%d cells", n)
	}
}
