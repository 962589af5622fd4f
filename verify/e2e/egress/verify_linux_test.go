package egress

import (
	"os"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/api"
)

// TestVerifyKnowsTheKernel: what the table needs was tried, and verify says so, how full the table of
// connections is, and what became of refusals.
func TestVerifyKnowsTheKernel(t *testing.T) {
	h := newHost(t)
	check := func(name string) api.Check {
		t.Helper()
		out, err := h.dial().Verify(h.ctx())
		h.must(err)
		for _, c := range out.Checks {
			if c.Name == name {
				return c
			}
		}
		t.Fatalf("no check %q in %+v", name, out.Checks)
		return api.Check{}
	}
	if c := check("the kernel has what the table needs"); c.State != api.CheckStateOK {
		t.Errorf("%+v", c)
	}
	if c := check("room for connections"); c.State != api.CheckStateOK || !strings.Contains(c.Detail, "are tracked") {
		t.Errorf("%+v", c)
	}
	if c := check("nobody else uses the marks"); c.State != api.CheckStateOK {
		t.Errorf("%+v", c)
	}
	h.run("ip", "rule", "add", "fwmark", "0x40000000", "lookup", "main", "priority", "77")
	c := check("nobody else uses the marks")
	h.run("ip", "rule", "del", "priority", "77")
	if c.State != api.CheckStateWarning || !strings.Contains(c.Detail, "policy routing rule 77 looks at the mark 0x40000000/0xffffffff for table 254 (ip rule)") {
		t.Errorf("%+v", c)
	}
	const migrates = "/proc/sys/net/ipv4/tcp_migrate_req"
	if _, err := os.Stat(migrates); err == nil {
		h.must(os.WriteFile(migrates, []byte("1"), 0o644))
		c := check("connections end with their listeners")
		h.must(os.WriteFile(migrates, []byte("0"), 0o644))
		if c.State != api.CheckStateWarning || c.Next != "sysctl net.ipv4.tcp_migrate_req=0" {
			t.Errorf("%+v", c)
		}
	}
	if c := check("refusals are told"); c.State != api.CheckStateOK {
		t.Errorf("%+v", c)
	}
}
