package boxes

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
	"github.com/gominimal/minhost/verify/netlab"
)

// wants requires one error of the interface with this short name, in one printable line.
func (h *host) wants(what string, err error, name string) {
	h.Helper()
	var e api.Error
	switch {
	case err == nil:
		h.Errorf("%s: no error; want %s", what, name)
	case !errors.As(err, &e):
		h.Errorf("%s: %v; want %s", what, err, name)
	case !strings.HasSuffix(e.ErrorName(), "Host."+name):
		h.Errorf("%s: %s: %v; want %s", what, e.ErrorName(), err, name)
	case err.Error() == "" || len(err.Error()) > 300 || err.Error() != api.Text(err.Error()):
		h.Errorf("%s: the message is no printable line: %q", what, err)
	}
}

// TestNames: what is no name is one clear error, and nothing is reserved.
func TestNames(t *testing.T) {
	h := newHost(t)
	c := h.dial(operatorUID)
	for _, name := range []string{"a_b", "-a", "a-", "a b", "a..b", ".a", "a.", "a.b.c.d", "host", "minhost", "web\n", "\x1b[31mred",
		"weß", "\u212a", "..", "/etc/passwd", strings.Repeat("a", 64), strings.Repeat(strings.Repeat("a", 60)+".", 3) + "abcdefghijklmnopqrstu"} {
		_, err := c.Plan(h.ctx(), planIn(name, denyPolicy()))
		h.wants(fmt.Sprintf("name %q", name), err, "InvalidArgument")
		var e *api.InvalidArgument
		if errors.As(err, &e) && e.Field != "name" {
			t.Errorf("name %q: field %q", name, e.Field)
		}
	}
	out, err := c.Plan(h.ctx(), planIn("Web.Example", denyPolicy()))
	if err != nil || out.Name != "web.example" {
		t.Errorf("a name in capitals: %+v, %v", out, err)
	}
	_, err = h.dial(operatorUID).Plan(h.ctx(), planIn("web.example", denyPolicy()))
	h.wants("a name that is taken", err, "NameTaken")
	c.Close()
}

// TestPolicies: what is no policy is an error that names the field.
func TestPolicies(t *testing.T) {
	h := newHost(t)
	c := h.dial(operatorUID)
	ingressPorts := denyPolicy()
	ingressPorts.IngressPorts = []int{80}
	subnet := openPolicy()
	subnet.DenySubnets = []string{"10.0.0.0/33"}
	rulesWithDeny := rules("127.0.0.1 80 tcp")
	rulesWithDeny.Egress = api.EgressDeny
	for what, p := range map[string]api.Policy{
		"no egress": {}, "egress of another kind": {Egress: "perhaps"}, "rules without a destination": rules("nowhere 80 tcp"),
		"a port that is none": rules("127.0.0.1 80-79 tcp"), "ports of icmp": rules("127.0.0.1 80 icmp"), "a protocol that is none": rules("127.0.0.1 80 sctp"),
		"ports without ingress ports": ingressPorts, "a subnet that is none": subnet, "rules and deny": rulesWithDeny,
	} {
		_, err := c.Plan(h.ctx(), planIn("", p))
		h.wants(what, err, "InvalidArgument")
	}
	_, err := c.Plan(h.ctx(), api.PlanIn{Mode: api.ModeNone, Policy: openPolicy()})
	h.wants("an empty network that goes everywhere", err, "InvalidArgument")
	_, err = c.Plan(h.ctx(), api.PlanIn{Mode: api.ModeOwnIP, Policy: denyPolicy()})
	h.wants("own_ip without a tap", err, "InvalidArgument")
}

// TestLeaseErrors: unknown and foreign leases, wrong secrets, wrong states.
func TestLeaseErrors(t *testing.T) {
	h := newHost(t)
	b := h.box("mine", denyPolicy())
	mine, member, root := h.dial(operatorUID), h.dial(memberUID), h.dial(0)
	planner := h.dial(operatorUID)
	plan, err := planner.Plan(h.ctx(), planIn("", denyPolicy()))
	h.must(err)
	held := startAgent(h, netlab.Spawn{Leaf: netlab.NoLeaf, UID: operatorUID})
	attach := func(c *client.Client, lease string) error {
		return c.Attach(h.ctx(), api.AttachIn{Lease: lease, PID: held.PID()}, nil)
	}
	other := strings.Repeat("0", len(b.plan.Secret))
	for _, c := range []struct {
		what          string
		c             *client.Client
		lease, secret string
		name          string // of the error of Update, Join, Adopt, Teardown
	}{
		{"unknown lease", mine, "b0123456789abcdef", b.plan.Secret, "NoSuchLease"},
		{"no lease id", mine, "../boxes", b.plan.Secret, "NoSuchLease"},
		{"foreign lease", member, b.plan.Lease, b.plan.Secret, "NoSuchLease"},
		{"wrong secret", mine, b.plan.Lease, other, "WrongSecret"},
		{"empty secret", mine, b.plan.Lease, "", "WrongSecret"},
		{"wrong secret of root", root, b.plan.Lease, other, "WrongSecret"},
		{"planned", mine, plan.Lease, plan.Secret, "WrongState"},
	} {
		h.wants(c.what+", update", c.c.Update(h.ctx(), api.UpdateIn{Lease: c.lease, Secret: c.secret, Policy: new(openPolicy())}), c.name)
		_, _, err := c.c.Join(h.ctx(), api.JoinIn{Lease: c.lease, Secret: c.secret, Kind: api.JoinKindTask, PID: held.PID()}, nil)
		h.wants(c.what+", join", err, c.name)
		h.wants(c.what+", adopt", c.c.Adopt(h.ctx(), api.AdoptIn{Lease: c.lease, Secret: c.secret}), c.name)
		_, err = c.c.Teardown(h.ctx(), api.TeardownIn{Lease: c.lease, Secret: c.secret, Kill: true})
		h.wants(c.what+", teardown", err, c.name)
	}
	h.wants("unknown lease, attach", attach(mine, "b0123456789abcdef"), "NoSuchLease")
	h.wants("foreign lease, attach", attach(member, plan.Lease), "NoSuchLease")
	h.wants("another connection, attach", attach(mine, plan.Lease), "NotAllowed")
	h.wants("attached lease, attach", attach(mine, b.plan.Lease), "WrongState")
	h.wants("unknown lease, abandon", mine.Abandon(h.ctx(), api.AbandonIn{Lease: "b0123456789abcdef"}), "NoSuchLease")
	h.wants("foreign lease, abandon", member.Abandon(h.ctx(), api.AbandonIn{Lease: plan.Lease}), "NoSuchLease")
	h.wants("another connection, abandon", mine.Abandon(h.ctx(), api.AbandonIn{Lease: plan.Lease}), "NotAllowed")
	h.wants("attached lease, abandon", mine.Abandon(h.ctx(), api.AbandonIn{Lease: b.plan.Lease}), "WrongState")
	_, err = mine.Teardown(h.ctx(), api.TeardownIn{Lease: b.plan.Lease, Secret: b.plan.Secret})
	h.wants("live processes, teardown without kill", err, "Busy")
	_, err = mine.Explain(h.ctx(), api.ExplainIn{Box: "nobody", Destination: "192.0.2.7:443"})
	h.wants("unknown box, explain", err, "NoSuchLease")
	_, err = mine.Explain(h.ctx(), api.ExplainIn{Box: "mine", Destination: "somewhere"})
	h.wants("no destination, explain", err, "InvalidArgument")
	// Nothing of all that did anything: the box is there, the plan can be attached.
	b.refused("tcp", "127.0.0.1:8099")
	h.must(attach(planner, plan.Lease))
	_, err = planner.Teardown(h.ctx(), api.TeardownIn{Lease: plan.Lease, Secret: plan.Secret, Kill: true})
	h.must(err)
	planner.Close()
}

// TestTargets: processes that may not enter a leaf.
func TestTargets(t *testing.T) {
	h := newHost(t)
	boxed := h.box("boxed", denyPolicy())
	c := h.dial(operatorUID)
	plan, err := c.Plan(h.ctx(), planIn("", denyPolicy()))
	h.must(err)
	spawn := func(uid uint32) *agent { return startAgent(h, netlab.Spawn{Leaf: netlab.NoLeaf, UID: uid}) }
	listener, datagram, six := spawn(operatorUID), spawn(operatorUID), spawn(operatorUID)
	listener.serve("tcp", "127.0.0.1:0")
	datagram.serve("udp", "127.0.0.1:0")
	six.serve("tcp", "[::1]:0")
	dead := spawn(operatorUID)
	dead.Kill()
	for _, target := range []struct {
		what         string
		pid          int
		name, reason string
	}{
		{"of another user", spawn(strangerUID).PID(), "ProcessRefused", "uid"},
		{"of root", spawn(0).PID(), "ProcessRefused", "uid"},
		{"in a leaf", boxed.PID(), "ProcessRefused", "in_leaf"},
		{"with a listener", listener.PID(), "ProcessRefused", "socket"},
		{"with a datagram socket", datagram.PID(), "ProcessRefused", "socket"},
		{"with an IPv6 listener", six.PID(), "ProcessRefused", "socket"},
		{"with an inherited listener", h.inheritor(), "ProcessRefused", "socket"},
		{"with a child", h.parent(), "ProcessRefused", "children"},
		{"in another pid namespace", h.program(&syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}), "ProcessRefused", "pidns"},
		{"dead", dead.PID(), "NoSuchProcess", ""},
		{"zombie", h.zombie(), "NoSuchProcess", ""},
		{"that never was", 1<<22 - 1, "NoSuchProcess", ""},
		{"no pid", 0, "InvalidArgument", ""},
		{"negative", -1, "InvalidArgument", ""},
	} {
		err := c.Attach(h.ctx(), api.AttachIn{Lease: plan.Lease, PID: target.pid}, nil)
		h.wants("process "+target.what, err, target.name)
		var refused *api.ProcessRefused
		if errors.As(err, &refused) && refused.Reason != target.reason {
			t.Errorf("process %s: reason %q; want %q", target.what, refused.Reason, target.reason)
		}
		_, _, err = c.Join(h.ctx(), api.JoinIn{Lease: boxed.plan.Lease, Secret: boxed.plan.Secret, Kind: api.JoinKindExec, PID: target.pid}, nil)
		h.wants("join of a process "+target.what, err, target.name)
	}
	null, err := os.Open("/dev/null")
	h.must(err)
	defer null.Close()
	h.wants("a descriptor that is no pidfd", c.Attach(h.ctx(), api.AttachIn{Lease: plan.Lease}, null), "InvalidArgument")
	// What was refused stayed where it was, and the plan is still good.
	good := spawn(operatorUID)
	h.must(c.Attach(h.ctx(), api.AttachIn{Lease: plan.Lease, PID: good.PID()}, nil))
	b, err := os.ReadFile("/sys/fs/cgroup/minhost/boxes/" + plan.Lease + "/cgroup.procs")
	if err != nil || strings.TrimSpace(string(b)) != fmt.Sprint(good.PID()) {
		t.Errorf("leaf: %q, %v; want %d", b, err, good.PID())
	}
	_, err = c.Teardown(h.ctx(), api.TeardownIn{Lease: plan.Lease, Secret: plan.Secret, Kill: true})
	h.must(err)
}

// program starts a waiting program of the operator's and returns its pid.
func (h *host) program(attr *syscall.SysProcAttr, files ...*os.File) int {
	h.Helper()
	cmd := exec.Command("/bin/sleep", "4715")
	attr.Credential = &syscall.Credential{Uid: operatorUID, Gid: operatorUID}
	cmd.SysProcAttr, cmd.ExtraFiles = attr, files
	h.must(cmd.Start())
	h.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd.Process.Pid
}

func (h *host) inheritor() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	h.must(err)
	h.Cleanup(func() { l.Close() })
	f, err := l.(*net.TCPListener).File()
	h.must(err)
	defer f.Close()
	return h.program(&syscall.SysProcAttr{}, f)
}

func (h *host) parent() int {
	cmd := exec.Command("/bin/sh", "-c", "/bin/sleep 4716 & echo; wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: operatorUID, Gid: operatorUID}, Setpgid: true}
	out, err := cmd.StdoutPipe()
	h.must(err)
	h.must(cmd.Start())
	out.Read(make([]byte, 1))
	h.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
	})
	return cmd.Process.Pid
}

func (h *host) zombie() int {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: operatorUID, Gid: operatorUID}}
	h.must(cmd.Start())
	h.Cleanup(func() { cmd.Wait() })
	h.settle()
	return cmd.Process.Pid
}
