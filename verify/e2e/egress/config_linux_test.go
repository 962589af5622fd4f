package egress

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/linux"
	"github.com/gominimal/minhost/linux/belt"
	"github.com/gominimal/minhost/verify/e2e/rig"
	"github.com/gominimal/minhost/verify/netlab"
)

const movedMarks = `{"marks": {"belt": "0x00800000", "lease": "0x00400000", "host": "0x00200000", "ingress": "0x00100000", "foreign": "0x00080000", "flow": "0x00040000"}}`

// configure writes the admin's file.
func (h *host) configure(text string) {
	h.Helper()
	path := linux.DefaultLayout().Config
	h.must(os.MkdirAll(filepath.Dir(path), 0o755))
	h.must(os.WriteFile(path, []byte(text), 0o644))
	h.Cleanup(func() { os.RemoveAll(filepath.Dir(path)) })
}

// TestMovedMarks: an admin moved every bit of ours. Belt, table, helper, cut and answerer agree on the new ones; the old
// ones are free for others; each layer alone refuses.
func TestMovedMarks(t *testing.T) {
	h := &host{t}
	rig.Bare(t)
	h.configure(movedMarks)
	config, err := linux.ReadConfig(linux.DefaultLayout().Config)
	h.must(err)
	moved := ground
	moved.Marks = config.Marks
	rig.Install(t)
	o := h.outside()
	for _, network := range []string{"tcp", "udp"} {
		for _, port := range []string{":8191", ":8192"} {
			serve(network, "127.0.0.1"+port)
			o.do(func() { serve(network, far+port) })
		}
	}
	sibling := h.box("sibling", api.Policy{Egress: api.EgressDeny})
	sibling.says("serve", "tcp", sibling.plan.Address+":3000", "ok")
	b, deny := h.box("listed", rules("127.0.0.1 8191 tcp", far+" 8191 udp", far+" 8191 tcp")), h.box("deny", api.Policy{Egress: api.EgressDeny})
	judged := func() {
		t.Helper()
		b.reaches("tcp", "127.0.0.1:8191", true)
		b.reaches("udp", far+":8191", true)
		b.reaches("tcp", far+":8191", true)
		b.reaches("tcp", "127.0.0.1:8192", false)
		b.reaches("udp", far+":8192", false)
		b.reaches("tcp", sibling.plan.Address+":3000", false)
		for _, a := range []string{"127.0.0.1:8191", "127.0.0.1:8192", far + ":8191", far + ":8192", sibling.plan.Address + ":3000"} {
			deny.reaches("tcp", a, false)
			deny.reaches("udp", a, false)
		}
	}
	judged()
	h.marksAre(api.CheckStateOK)
	b.says("hold", "tcp", far+":8191", "ok")
	b.update(rules("127.0.0.1 8191 tcp", far+" 8191 udp"))
	b.says("talk", "tcp", far+":8191", "ECONNABORTED")
	b.update(rules("127.0.0.1 8191 tcp", far+" 8191 udp", far+" 8191 tcp"))

	// Nobody's bits of before: another table writes all of them on everything, and routes by them.
	h.run("nft", "add table inet theirs; add chain inet theirs o { type filter hook output priority 0; }; add rule inet theirs o meta mark set 0x7e000000")
	h.run("ip", "rule", "add", "fwmark", "0x40000000/0x7e000000", "lookup", "main", "priority", "77")
	judged()
	h.marksAre(api.CheckStateOK)
	h.run("ip", "rule", "add", "fwmark", "0x00800000", "lookup", "main", "priority", "78")
	h.marksAre(api.CheckStateWarning)
	h.run("ip", "rule", "del", "priority", "77")
	h.run("ip", "rule", "del", "priority", "78")
	h.run("nft", "delete", "table", "inet", "theirs")

	// Whose lookup it was, the answerer reads from the mark.
	r := rig.Cmd{UID: rig.User}.Run(t, "run", "--name", "asker", "--egress", "deny", "--", "/usr/bin/getent", "hosts", "no.such.example")
	if !strings.Contains(r.Stderr, "could not look up no.such.example") {
		t.Errorf("a refused lookup: %v", r)
	}
	h.signal("supervise", syscall.SIGSTOP)
	h.signal("helper", syscall.SIGKILL)
	h.must(moved.Belt((*belt.Belt).Detach))
	deny.reaches("udp", far+":8191", false) // the table alone
	h.must(moved.Belt((*belt.Belt).Apply))
	exec.Command("/usr/sbin/nft", "delete", "table", "inet", "minhost").Run()
	for _, a := range []string{"127.0.0.1:8191", far + ":8191"} { // the belt alone
		if out := ask[netlab.Outcome](b, order{Op: "dial", Network: "udp", Address: a}); out.OK() {
			t.Errorf("the belt alone: %s: %v", a, out)
		}
	}
	h.signal("supervise", syscall.SIGCONT)
	h.dial()
	rig.Eventually(t, 10*time.Second, "allowed traffic is back", func() bool {
		return ask[netlab.Outcome](b, order{Op: "dial", Network: "tcp", Address: "127.0.0.1:8191"}).OK()
	})
	judged()
	for _, x := range []*box{b, deny, sibling} {
		x.end()
	}
	rig.Undo(t)
}

// marksAre requires what verify says about the marks.
func (h *host) marksAre(want api.CheckState) {
	h.Helper()
	out, err := h.dial().Verify(h.ctx())
	h.must(err)
	for _, c := range out.Checks {
		if c.Name == "nobody else uses the marks" && c.State != want {
			h.Errorf("%+v", c)
		}
	}
}

// TestBadConfig: a config that cannot be used is one error that names the file; nothing is done.
func TestBadConfig(t *testing.T) {
	before := rig.Bare(t)
	h := &host{t}
	path := linux.DefaultLayout().Config
	for text, want := range map[string]string{
		`{"marks": {"lease": "0x40000000"}}`: "each must be one bit of its own", `{"marks": 7}`: path, `{"mark": {}}`: "unknown field",
	} {
		h.configure(text)
		rig.Run(t, "finalize-install", "--yes").Want(t, 1, want, path)
	}
	h.configure(movedMarks)
	h.must(os.Chmod(path, 0o666))
	rig.Run(t, "finalize-install", "--yes").Want(t, 1, "nobody else may write", path)
	h.must(os.RemoveAll(filepath.Dir(path)))
	before.Same(t)
}
