package boxes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

// outcomeOf runs a dial in a program that a shell line starts from inside the box; %s is the program.
func (b *box) outcomeOf(line string, d netlab.Dial) netlab.Outcome {
	b.h.Helper()
	raw, err := json.Marshal(d)
	b.h.must(err)
	// The agent's environment says "agent": the child is another one.
	program := fmt.Sprintf("env NETLAB_CHILD=netlab-dial %s '%s'", testProgram, raw)
	out := ask[struct {
		Status int
		Text   string
	}](b.agent, "exec", []string{"/bin/sh", "-c", fmt.Sprintf(line, program)})
	var o netlab.Outcome
	if err := json.Unmarshal([]byte(out.Text), &o); err != nil {
		b.h.Fatalf("%s: %v: %q", line, err, out.Text)
	}
	return o
}

// TestDescendants: what a box process starts is under the verdict, however it is started.
func TestDescendants(t *testing.T) {
	h := newHost(t)
	netlab.Echo(h, "tcp", "127.0.0.1:8099", 0)
	netlab.Echo(h, "tcp", "127.0.0.1:8098", 0)
	b := h.box("parent", rules("127.0.0.1 8099 tcp"))
	const pipe = "p=/tmp/e2e-$$; mkfifo $p; %s; cat $p; rm $p"
	for name, line := range map[string]string{
		"child":                   "%s",
		"setsid":                  "setsid -w %s",
		"double fork":             fmt.Sprintf(pipe, "((sleep 0.1; %s) > $p &)"),
		"double fork and setsid":  fmt.Sprintf(pipe, "(setsid sh -c 'sleep 0.1; exec \"$@\"' sh %s > $p &)"),
		"user namespace":          "unshare -r %s",
		"cgroup namespace":        "unshare -r -C %s",
		"pid and mount namespace": "unshare -r -p -f -m %s",
	} {
		if o := b.outcomeOf(line, netlab.Dial{Network: "tcp", Address: "127.0.0.1:8099"}); !o.OK() {
			t.Errorf("%s: allowed destination: %v", name, o)
		}
		if o := b.outcomeOf(line, netlab.Dial{Network: "tcp", Address: "127.0.0.1:8098"}); o.OK() || o.Errno == 0 {
			t.Errorf("%s: other destination: %v; want refused", name, o)
		}
	}
}

// TestNoEscape: a box process can't leave its leaf, nor change table or belt.
func TestNoEscape(t *testing.T) {
	h := newHost(t)
	netlab.Echo(h, "tcp", "127.0.0.1:8098", 0)
	open := h.box("elsewhere", openPolicy())
	b := h.box("prisoner", denyPolicy())
	own := ask[string](b.agent, "cgroup", struct{}{})
	if !strings.Contains(own, "/boxes/"+b.plan.Lease+"\n") {
		t.Fatalf("cgroup %q", own)
	}
	for _, group := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/minhost", "/sys/fs/cgroup/minhost/holder", boxesDir, boxesDir + "/" + open.plan.Lease} {
		for _, file := range []string{"cgroup.procs", "cgroup.threads"} {
			if got := ask[string](b.agent, "write", [2]string{group + "/" + file, "0"}); got == "" {
				t.Errorf("a box process moved itself by %s/%s", group, file)
			}
		}
	}
	for name, script := range map[string]string{
		"a cgroup namespace":    "unshare -r -C sh -c 'echo 0 > /sys/fs/cgroup/cgroup.procs' ",
		"a mount of cgroup2":    "unshare -r -m sh -c 'mount -t cgroup2 none /mnt && echo 0 > /mnt/minhost/holder/cgroup.procs'",
		"a mount and namespace": "unshare -r -m -C sh -c 'mount -t cgroup2 none /mnt && (echo 0 > /mnt/cgroup.procs; mkdir /mnt/x && echo 0 > /mnt/x/cgroup.procs && cat /proc/self/cgroup | grep -q x)'",
		"mkdir in boxes":        "mkdir " + boxesDir + "/x",
		"kill of a sibling":     "echo 1 > " + boxesDir + "/" + open.plan.Lease + "/cgroup.kill",
		"nft flush":             "/usr/sbin/nft flush ruleset",
		"nft delete":            "/usr/sbin/nft delete table inet minhost",
		"nft in user namespace": "unshare -r /usr/sbin/nft flush ruleset",
		"the zone file":         "echo x > " + layout.Zone,
		"the records":           "ls " + layout.Leases,
	} {
		out := ask[struct {
			Status int
			Text   string
		}](b.agent, "exec", []string{"/bin/sh", "-c", script})
		if out.Status == 0 || out.Status == 126 || out.Status == 127 {
			t.Errorf("%s in a box: status %d: %s; want a failure of the deed", name, out.Status, out.Text)
		}
	}
	// The belt is attached so that detaching needs its own descriptor, which only root can get: the
	// kernel asks for no other right.
	for _, hook := range []int{unix.BPF_CGROUP_INET_EGRESS, unix.BPF_CGROUP_INET_INGRESS, unix.BPF_CGROUP_SETSOCKOPT} {
		if got := ask[string](b.agent, "detach", hook); got != "EPERM" && got != "EINVAL" {
			t.Errorf("detach of the belt, hook %d: %q; want EPERM or EINVAL", hook, got)
		}
	}
	h.verified()
	if now := ask[string](b.agent, "cgroup", struct{}{}); now != own {
		t.Errorf("cgroup was %q, is %q", own, now)
	}
	b.refused("tcp", "127.0.0.1:8098")
	open.reaches("tcp", "127.0.0.1:8098")
}

// TestNamespacesInside: a network namespace that a box makes keeps its own loopback.
func TestNamespacesInside(t *testing.T) {
	h := newHost(t)
	b := h.box("bubble", denyPolicy())
	const script = `ip link set lo up && python3 -c '
import socket
for f, a in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    l = socket.socket(f); l.bind((a, 0)); l.listen(1)
    c = socket.socket(f); c.settimeout(2); c.connect(l.getsockname()[:2])
    s, _ = l.accept(); c.sendall(b"x"); assert s.recv(1) == b"x"
    u = socket.socket(f, socket.SOCK_DGRAM); u.bind((a, 0)); u.settimeout(2)
    v = socket.socket(f, socket.SOCK_DGRAM); v.sendto(b"y", u.getsockname()[:2]); assert u.recv(1) == b"y"
' && ping -c1 -W2 127.0.0.1`
	for _, user := range []uint32{operatorUID, 0} {
		b := b
		if user == 0 {
			b = h.boxOf(0, planIn("rootbubble", denyPolicy()))
		}
		out := ask[struct {
			Status int
			Text   string
		}](b.agent, "exec", []string{"unshare", "-r", "-n", "/bin/sh", "-c", script})
		if out.Status != 0 {
			t.Errorf("uid %d: own loopback: status %d: %s", user, out.Status, out.Text)
		}
	}
}

// TestSocketOptions: what acts on the network without a packet that a rule could see is refused to a
// box and left to the host.
func TestSocketOptions(t *testing.T) {
	h := newHost(t)
	hostSide := startAgent(t, netlab.Spawn{Leaf: netlab.NoLeaf, UID: operatorUID})
	deny, open := h.box("options", denyPolicy()), h.box("options-open", openPolicy())
	for _, option := range []string{"IP_ADD_MEMBERSHIP", "IPV6_JOIN_GROUP", "SO_ATTACH_REUSEPORT_CBPF"} {
		if got := ask[string](hostSide, "sockopt", option); got != "" {
			t.Errorf("host, %s: %s", option, got)
		}
		for _, b := range []*box{deny, open} {
			if got := ask[string](b.agent, "sockopt", option); got != "EPERM" {
				t.Errorf("%v, %s: %q; want EPERM", b, option, got)
			}
		}
	}
	if got := ask[string](deny.agent, "sockopt", "SO_REUSEADDR"); got != "" {
		t.Errorf("box, SO_REUSEADDR: %s", got)
	}
}

// TestHostUntouched: the host's processes are never refused whatever their marks, and their packets
// leave our table after one rule: a table of the test's counts what our chains would have marked.
func TestHostUntouched(t *testing.T) {
	h := newHost(t)
	o := h.outside()
	h.box("beside", denyPolicy())
	near := netlab.Echo(h, "tcp", "127.0.0.1:0", 0)
	nearUDP := netlab.Echo(h, "udp", "[::1]:0", 0)
	far := o.echo("tcp", atPort(o.far4(), 0))
	for _, mark := range []uint32{0, 1, 0x08000000, 0x10000000, 0x20000000, 0x20000001, 0x30000001, 0x40000000, 0x60000001, 0x70000001, 0xffffffff} {
		marked := netlab.Echo(h, "tcp", "127.0.0.1:0", mark)
		for _, d := range []netlab.Dial{{Network: "tcp", Address: near}, {Network: "udp", Address: nearUDP}, {Network: "tcp", Address: far}, {Network: "tcp", Address: marked}} {
			d.Mark = mark
			if out := d.Do(); !out.OK() {
				t.Errorf("host with mark %#x, %s %s: %v", mark, d.Network, d.Address, out)
			}
		}
	}
}

// TestHostLeavesAfterOneRule: the kernel's own trace of a packet of the operator's outside boxes.
func TestHostLeavesAfterOneRule(t *testing.T) {
	h := newHost(t)
	o := h.outside()
	far := o.echo("tcp", atPort(o.far4(), 0))
	trace := fmt.Sprintf("table inet e2e { chain out { type filter hook output priority -400; ip daddr %s meta nftrace set 1; }; }", o.far4())
	h.must(os.WriteFile("/run/e2e.nft", []byte(trace), 0o644))
	h.run("nft", "-f", "/run/e2e.nft")
	defer h.run("nft", "delete", "table", "inet", "e2e")
	traced := func(dial func() netlab.Outcome) (rules, chains []string) {
		monitor := exec.Command("stdbuf", "-oL", "nft", "monitor", "trace")
		var text bytes.Buffer
		monitor.Stdout = &text
		h.must(monitor.Start())
		h.settle()
		if out := dial(); !out.OK() {
			t.Errorf("dial: %v", out)
		}
		h.settle()
		monitor.Process.Kill()
		monitor.Wait()
		for line := range strings.Lines(text.String()) {
			f := strings.Fields(line)
			if len(f) > 7 && f[0] == "trace" && f[3] == "inet" && f[4] == "minhost" {
				chains = append(chains, f[5])
				// Whoever is in no box is counted where its packet leaves the chain.
				if f[6] == "rule" && f[7] != "counter" {
					rules = append(rules, strings.TrimSpace(line))
				}
			}
		}
		return rules, chains
	}
	operator := startAgent(t, netlab.Spawn{Leaf: netlab.NoLeaf, UID: operatorUID})
	rules, chains := traced(func() netlab.Outcome { return operator.dial("tcp", far) })
	if len(chains) == 0 {
		t.Error("the trace shows no packet of the operator in our table")
	}
	if len(rules) > 0 {
		t.Errorf("a packet of a process outside boxes matched rules:\n%s", strings.Join(rules, "\n"))
	}
	for _, c := range chains {
		if c != "out" && c != "nat_out" && c != "in" {
			t.Errorf("a packet of a process outside boxes was in chain %s", c)
		}
	}
	// The control: a box's packets are judged in more than that.
	b := h.box("traced", openPolicy())
	if rules, _ = traced(func() netlab.Outcome { return b.dial("tcp", far) }); len(rules) < 2 {
		t.Errorf("the trace shows %d rules for a box", len(rules))
	}
}
