package boxes

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/verify/netlab"
)

var tap = api.Tap{Address: "10.0.2.15/24", Gateway: "10.0.2.2", MTU: 1400, Name: "eth0"}

// alone is an agent of the operator's in a network namespace of its own.
func (h *host) alone() *agent {
	h.Helper()
	return startAgent(h, netlab.Spawn{Leaf: netlab.NoLeaf, UID: operatorUID, Cloneflags: syscall.CLONE_NEWNET})
}

// isolated plans a box and attaches an agent with its own namespace. The tap is nil for none.
func (h *host) isolated(in api.PlanIn) (*box, *os.File) {
	h.Helper()
	in.Policy = denyPolicy()
	c := h.dial(operatorUID)
	plan, err := c.Plan(h.ctx(), in)
	h.must(err)
	b := &box{h: h, c: c, plan: plan, agent: h.alone()}
	f, err := c.AttachTap(h.ctx(), api.AttachIn{Lease: plan.Lease, PID: b.PID()}, nil)
	h.must(err)
	h.Cleanup(func() { b.end(); f.Close() })
	return b, f
}

// inside starts a process of the operator's in the network namespace of another one.
func (h *host) inside(pid int) int {
	h.Helper()
	uid := strconv.Itoa(operatorUID)
	cmd := exec.Command("/usr/bin/nsenter", "--net=/proc/"+strconv.Itoa(pid)+"/ns/net", "--setuid", uid, "--setgid", uid, "/bin/sleep", "60")
	h.must(cmd.Start())
	h.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	h.within(10*time.Second, "it sleeps in there", func() error {
		comm, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/comm")
		if err == nil && string(comm) != "sleep\n" {
			err = errors.New("not yet")
		}
		return err
	})
	return cmd.Process.Pid
}

// shows runs a program in the agent and returns what it printed.
func (a *agent) shows(args ...string) string {
	a.TB.Helper()
	return ask[struct {
		Status int
		Text   string
	}](a, "exec", args).Text
}

// A none box: its network is empty, its loopback is its own, and a socket of its address is to be had.
func TestNone(t *testing.T) {
	h := newHost(t)
	netlab.Echo(h, "tcp", "127.0.0.1:8131", 0)
	b, f := h.isolated(api.PlanIn{Name: "hermit", Mode: api.ModeNone})
	if f != nil || !b.plan.Net.Isolate || b.plan.Net.Resolver != api.ResolverNone || b.plan.Net.Tap != nil {
		t.Errorf("net plan %+v, descriptor %v", b.plan.Net, f)
	}
	if o := b.dial("tcp", "127.0.0.1:8131"); o.OK() || o.Errno != unix.ECONNREFUSED {
		t.Errorf("to the host's localhost: %v", o)
	}
	if o := b.dial("tcp", "192.0.2.1:80"); o.Errno != unix.ENETUNREACH {
		t.Errorf("to the world: %v", o)
	}
	b.reaches("tcp", b.serve("tcp", "127.0.0.1:0"))
	b.listen(api.ProtocolTCP, 80)
}

// An own-ip box: the tap is made in its namespace as planned, and its descriptor given once.
func TestOwnIP(t *testing.T) {
	h := newHost(t)
	b, f := h.isolated(api.PlanIn{Name: "guest", Mode: api.ModeOwnIP, Tap: &tap})
	if f == nil {
		t.Fatal("the reply had no tap")
	}
	if n := b.plan.Net; !n.Isolate || len(n.Nameservers) != 1 || n.Nameservers[0] != "10.0.2.2" || n.Tap == nil || *n.Tap != tap {
		t.Errorf("net plan %+v", n)
	}
	out := b.shows("/usr/sbin/ip", "-o", "address") + b.shows("/usr/sbin/ip", "route") + b.shows("/usr/sbin/ip", "link", "show", "eth0")
	for _, want := range []string{"inet 127.0.0.1/8", "inet 10.0.2.15/24", "default via 10.0.2.2 dev eth0", "mtu 1400", ",UP"} {
		if !strings.Contains(out, want) {
			t.Errorf("the box has no %q:\n%s", want, out)
		}
	}
	// What the box sends comes out of the descriptor: it asks for the gateway.
	b.Say(`{"Op": "dial", "In": {"Network": "udp", "Address": "192.0.2.1:53"}}`)
	frame := make([]byte, 2000)
	h.within(10*time.Second, "an ARP request comes out of the tap", func() error {
		n, err := f.Read(frame)
		if err != nil || n < 14 || frame[12] != 8 || frame[13] != 6 {
			return errors.Join(err, errors.New("another frame"))
		}
		return nil
	})
	b.end()
	if _, err := f.Read(frame); !errors.Is(err, unix.EBADFD) {
		t.Errorf("the tap behind the teardown: %v; want EBADFD", err)
	}
}

// Who may not be the first of an isolated box, and that a refused one is where it was.
func TestIsolatedRefusals(t *testing.T) {
	h := newHost(t)
	first, _ := h.isolated(api.PlanIn{Mode: api.ModeNone})
	c := h.dial(operatorUID)
	plan, err := c.Plan(h.ctx(), api.PlanIn{Mode: api.ModeNone, Policy: denyPolicy()})
	h.must(err)
	shared := h.alone()
	second := h.inside(shared.PID())
	dirty := h.alone()
	h.run("/usr/sbin/ip", "link", "add", "stray0", "type", "veth", "peer", "name", "stray1")
	h.run("/usr/sbin/ip", "link", "set", "stray1", "netns", strconv.Itoa(dirty.PID()))
	host := startAgent(h, netlab.Spawn{Leaf: netlab.NoLeaf, UID: operatorUID})
	for _, c2 := range []struct {
		what, reason string
		pid          int
	}{
		{"in the host's network", "host_network", host.PID()},
		{"beside another process", "shared_network", shared.PID()},
		{"with a device", "network_not_empty", dirty.PID()},
		{"in another box's namespace", "shared_network", h.inside(first.PID())},
	} {
		err := c.Attach(h.ctx(), api.AttachIn{Lease: plan.Lease, PID: c2.pid}, nil)
		var refused *api.ProcessRefused
		if !errors.As(err, &refused) || refused.Reason != c2.reason {
			t.Errorf("a process %s: %v; want %s", c2.what, err, c2.reason)
		}
		if b, err := os.ReadFile("/proc/" + strconv.Itoa(c2.pid) + "/cgroup"); err != nil || strings.Contains(string(b), plan.Lease) {
			t.Errorf("a process %s is in %s, %v", c2.what, b, err)
		}
	}
	syscall.Kill(second, syscall.SIGKILL)
	h.within(10*time.Second, "the other process is gone", func() error {
		return c.Attach(h.ctx(), api.AttachIn{Lease: plan.Lease, PID: shared.PID()}, nil)
	})
	_, err = c.Teardown(h.ctx(), api.TeardownIn{Lease: plan.Lease, Secret: plan.Secret, Kill: true})
	h.must(err)
}

// Who joins an isolated box gets its namespace, also from the next helper; never the host's network.
func TestJoinIsolated(t *testing.T) {
	h := newHost(t)
	b, _ := h.isolated(api.PlanIn{Mode: api.ModeOwnIP, Tap: &tap})
	join := func() (*os.File, error) {
		held := startAgent(h, netlab.Spawn{Leaf: netlab.NoLeaf, UID: operatorUID})
		out, f, err := h.dial(operatorUID).Join(h.ctx(), api.JoinIn{Lease: b.plan.Lease, Secret: b.plan.Secret, Kind: api.JoinKindExec, PID: held.PID()}, nil)
		if err == nil && (f == nil || !out.Net.Isolate) {
			t.Fatalf("joined with %v, %+v", f, out.Net)
		}
		return f, err
	}
	same := func(what string) {
		t.Helper()
		f, err := join()
		h.must(err)
		defer f.Close()
		var got, want unix.Stat_t
		h.must(errors.Join(unix.Fstat(int(f.Fd()), &got), unix.Stat("/proc/"+strconv.Itoa(b.PID())+"/ns/net", &want)))
		if got.Ino != want.Ino || got.Dev != want.Dev {
			t.Errorf("%s: the namespace is %d, that of the box %d", what, got.Ino, want.Ino)
		}
	}
	same("first helper")
	h.killHelper()
	h.waitHelper()
	same("second helper")
	// What is left in the leaf are those that joined and never entered: the namespace is gone with the box's
	// first process, for a helper that did not hold it before.
	f, err := join()
	h.must(err)
	f.Close()
	pid := h.killHelper()
	b.Kill()
	h.within(15*time.Second, "another helper", func() error {
		if now := h.waitHelper(); now == pid {
			return errors.New("the same")
		}
		return nil
	})
	_, err = join()
	if err == nil {
		t.Error("joined a box without its namespace")
	} else if n := api.ErrorName(err); !strings.HasSuffix(n, "WrongState") && !strings.HasSuffix(n, "NoSuchLease") {
		t.Errorf("join without the namespace: %v", err)
	}
}
