package boxes

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/verify/netlab"
)

// connectorMain opens a connection to the helper, and asks for List on it with each line of its input: the name of
// the error is what it prints. With the argument "pass" it gives the connection to a child and ends.
func connectorMain(args []string) int {
	if len(args) > 0 && args[0] == "passed" {
		// Who connected is the parent, until it has ended and the test has this process.
		for end := time.Now().Add(10 * time.Second); os.Getppid() != 1 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		return askOn(os.NewFile(3, "connection"))
	}
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: layout.Socket, Net: "unix"})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	f, err := c.File()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	c.Close()
	if len(args) == 0 {
		return askOn(f)
	}
	child := exec.Command("/proc/self/exe", "passed")
	child.Env, child.Stdin, child.Stdout, child.ExtraFiles = os.Environ(), os.Stdin, os.Stdout, []*os.File{f}
	if err := child.Start(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func askOn(f *os.File) int {
	fmt.Println("connected")
	replies := bufio.NewReader(f)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		_, err := f.Write([]byte(`{"method":"dev.minimal.Host.List"}` + "\x00"))
		var reply struct{ Error string }
		if err == nil {
			var b []byte
			if b, err = replies.ReadBytes(0); err == nil {
				err = json.Unmarshal(bytes.TrimSuffix(b, []byte{0}), &reply)
			}
		}
		if err != nil {
			reply.Error = err.Error()
		}
		fmt.Printf("error %q\n", reply.Error)
	}
	return 0
}

// TestCredentials: the kernel tells the helper who connected, and when. What counts is where that process is at the
// time of a call: one that connected and is a box now has no more rights than any box, and a connection whose
// process has ended has none, whoever holds it.
func TestCredentials(t *testing.T) {
	h := newHost(t)
	start := func(args ...string) *netlab.Proc {
		p := netlab.Start(h, netlab.Spawn{Leaf: netlab.NoLeaf, UID: operatorUID}, "connector", args...)
		if line := p.Line(); line != "connected" {
			t.Fatal(line)
		}
		return p
	}
	asks := func(p *netlab.Proc) string {
		p.Say("?")
		return p.Line()
	}
	p := start()
	if got := asks(p); got != `error ""` {
		t.Errorf("before it is a box: %s", got)
	}
	c := h.dial(operatorUID)
	plan, err := c.Plan(h.ctx(), planIn("connected", openPolicy()))
	h.must(err)
	h.must(c.Attach(h.ctx(), api.AttachIn{Lease: plan.Lease, PID: p.PID()}, nil))
	if got := asks(p); got != `error "dev.minimal.Host.NotAllowed"` {
		t.Errorf("when it is a box: %s", got)
	}
	_, err = c.Teardown(h.ctx(), api.TeardownIn{Lease: plan.Lease, Secret: plan.Secret, Kill: true})
	h.must(err)
	if got := asks(start("pass")); got != `error "dev.minimal.Host.NotAllowed"` {
		t.Errorf("the process that connected has ended: %s", got)
	}
}

// TestProviderAbsent: what joins a box with a network of its own, whose switch is not there, gets an error and
// nothing of it comes to the host's network.
func TestProviderAbsent(t *testing.T) {
	h := newHost(t)
	// It would be answered: the host has the address, and counts what is sent to it.
	h.run("ip", "address", "add", "192.0.2.80/32", "dev", "lo")
	h.Cleanup(func() { h.run("ip", "address", "del", "192.0.2.80/32", "dev", "lo") })
	netlab.Echo(h, "tcp", "192.0.2.80:8080", 0)
	h.run("nft", "add table inet absent; add chain inet absent c { type filter hook output priority -400; }; "+
		"add rule inet absent c ip daddr 192.0.2.80 counter")
	h.Cleanup(func() { h.run("nft", "delete table inet absent") })
	counted := func() bool {
		return !bytes.Contains([]byte(h.run("nft", "list table inet absent")), []byte("packets 0 "))
	}
	guest, switched := h.isolated(api.PlanIn{Name: "guest", Mode: api.ModeOwnIP, Tap: &tap})
	h.must(switched.Close()) // the switch ends: its tap goes
	hermit, _ := h.isolated(api.PlanIn{Name: "hermit", Mode: api.ModeNone})
	for _, b := range []*box{guest, hermit} {
		for _, network := range []string{"tcp", "udp"} {
			if o := b.dial(network, "192.0.2.80:8080"); o.OK() || o.Errno == syscall.ETIMEDOUT {
				t.Errorf("%v, %s: %v; want an error at once", b, network, o)
			}
		}
	}
	if counted() {
		t.Errorf("packets came to the host's network:\n%s", h.run("nft", "list table inet absent"))
	}
	if o := (netlab.Dial{Network: "tcp", Address: "192.0.2.80:8080"}).Do(); !o.OK() || !counted() {
		t.Errorf("the host itself: %v; the counter: %v", o, counted())
	}
}
