package egress

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/verify/e2e/rig"
	"github.com/gominimal/minhost/verify/netlab"
)

const withPlanes = `{"planes": {"cohort": {"mark": "0x00800000", "source": ["10.98.0.9"]}, "node": {"mark": "0x00400000"}}}`

// TestPlanes: bits that somebody else uses stop the installation; free ones tell boxes from the host by the admin's own
// rules, and boxes leave from their address; an update cuts as ever, a box ends without a trace.
func TestPlanes(t *testing.T) {
	h := &host{t}
	rig.Bare(t)
	h.configure(withPlanes)
	h.run("nft", "add table inet theirs; add chain inet theirs o { type filter hook output priority 0; }; add rule inet theirs o ct mark set 0x00400000")
	rig.Run(t, "finalize-install", "--yes", "--operator", rig.UserName).Want(t, 1)
	if r := rig.Run(t, "finalize-install", "--show"); !strings.Contains(r.Stdout+r.Stderr, "marks of planes: table inet theirs, chain o sets the mark bits 0x400000") {
		t.Errorf("the plan does not say whose the bits are: %v", r)
	}
	h.run("nft", "delete", "table", "inet", "theirs")
	rig.Install(t)
	o := h.outside()
	h.run("ip", "addr", "add", "10.98.0.9/24", "dev", h.device())
	o.do(func() { serve("tcp", far+":8193") })
	h.run("nft", "add table inet admin; add chain inet admin p { type filter hook postrouting priority 200; }; "+
		"add rule inet admin p ct mark and 0x00800000 != 0 ip saddr 10.98.0.9 counter comment cohort; add rule inet admin p ct mark and 0x00400000 != 0 ip saddr "+near+" counter comment node")
	defer h.run("nft", "delete", "table", "inet", "admin")
	counted := func() (cohort, node bool) {
		for line := range strings.Lines(h.prints("nft", "list", "table", "inet", "admin")) {
			some := strings.Contains(line, "counter packets") && !strings.Contains(line, "packets 0 ")
			cohort = cohort || some && strings.Contains(line, `"cohort"`)
			node = node || some && strings.Contains(line, `"node"`)
		}
		return cohort, node
	}
	b := h.box("listed", rules(far+" 8193 tcp"))
	b.says("hold", "tcp", far+":8193", "ok")
	if cohort, node := counted(); !cohort || node {
		t.Errorf("a flow of a box: cohort %v, node %v", cohort, node)
	}
	if d := (netlab.Dial{Network: "tcp", Address: far + ":8193"}.Do()); !d.OK() {
		t.Errorf("host: %v", d)
	}
	if _, node := counted(); !node {
		t.Error("a flow of the host is not the node's")
	}
	h.marksAre(api.CheckStateOK)
	b.says("talk", "tcp", far+":8193", "ok")
	b.update(api.Policy{Egress: api.EgressDeny})
	b.says("talk", "tcp", far+":8193", "ECONNABORTED")
	b.end()
	if flows := h.prints("conntrack", "-L"); strings.Contains(flows, "dst=10.98.0.9 ") {
		t.Errorf("flows of a box that has ended: %s", flows)
	}
	rig.Undo(t)
}

// device is the way to the other host.
func (h *host) device() string {
	h.Helper()
	name, _, _ := strings.Cut(strings.Fields(h.prints("ip", "-o", "-4", "addr", "show", "to", near))[1], "@")
	return name
}

func (h *host) prints(name string, args ...string) string {
	h.Helper()
	out, err := exec.Command(name, args...).Output()
	h.must(err)
	return string(out)
}
