package egress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
	"github.com/gominimal/minhost/verify/e2e/rig"
	"github.com/gominimal/minhost/verify/netlab"
)

// host is the lab with minhost installed. Runners are root here; accounts are e2e/boxes' matter.
type host struct{ testing.TB }

func newHost(t *testing.T) *host {
	t.Helper()
	rig.Bare(t)
	rig.Install(t)
	return &host{t}
}

func (h *host) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *host) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	h.Cleanup(cancel)
	return ctx
}

// dial waits for a helper that answers.
func (h *host) dial() *client.Client {
	h.Helper()
	var c *client.Client
	rig.Eventually(h, 15*time.Second, "the helper answers", func() bool {
		var err error
		if c, err = client.Dial(h.ctx(), rig.Socket); err != nil {
			return false
		}
		_, err = c.Status(h.ctx())
		return err == nil
	})
	h.Cleanup(func() { c.Close() })
	return c
}

func (h *host) run(name string, args ...string) {
	h.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		h.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// outside is another host at the end of a veth: 10.98.0.2, this one is 10.98.0.1.
const near, far = "10.98.0.1", "10.98.0.2"

type outside struct{ ns *os.File }

func (h *host) outside() outside {
	h.Helper()
	p := netlab.Start(h, netlab.Spawn{Leaf: netlab.NoLeaf, Cloneflags: syscall.CLONE_NEWNET}, "netlab-sleep")
	p.Line()
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", p.PID()))
	h.must(err)
	h.Cleanup(func() { ns.Close() })
	h.run("ip", "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", fmt.Sprint(p.PID()))
	h.Cleanup(func() { h.run("ip", "link", "del", "near") })
	up := func(dev, addr string) {
		h.run("ip", "addr", "add", addr+"/24", "dev", dev)
		h.run("ip", "link", "set", dev, "up")
	}
	up("near", near)
	o := outside{ns}
	o.do(func() { h.run("ip", "link", "set", "lo", "up"); up("far", far) })
	return o
}

// do runs f in the other host's namespace: sockets made there stay there.
func (o outside) do(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Setns(int(o.ns.Fd()), unix.CLONE_NEWNET); err == nil {
			f()
		}
	}()
	<-done
}

// box is an attached box with an agent in it.
type box struct {
	h    *host
	p    *netlab.Proc
	plan api.PlanOut
}

func (h *host) box(name string, p api.Policy) *box {
	h.Helper()
	c := h.dial()
	plan, err := c.Plan(h.ctx(), api.PlanIn{Name: name, Mode: api.ModeHost, Policy: p})
	h.must(err)
	b := &box{h, netlab.Start(h, netlab.Spawn{Leaf: netlab.NoLeaf}, "agent"), plan}
	b.p.Line()
	h.must(c.Attach(h.ctx(), api.AttachIn{Lease: plan.Lease, PID: b.p.PID()}, nil))
	return b
}

func (b *box) end() {
	b.h.Helper()
	_, err := b.h.dial().Teardown(b.h.ctx(), api.TeardownIn{Lease: b.plan.Lease, Secret: b.plan.Secret, Kill: true})
	b.h.must(err)
}

func (b *box) update(p api.Policy) {
	b.h.Helper()
	b.h.must(b.h.dial().Update(b.h.ctx(), api.UpdateIn{Lease: b.plan.Lease, Secret: b.plan.Secret, Policy: new(p)}))
}

func ask[Out any](b *box, o order) (out Out) {
	b.h.Helper()
	line, err := json.Marshal(o)
	b.h.must(err)
	b.p.Say(string(line))
	b.h.must(json.Unmarshal([]byte(b.p.Line()), &out))
	return out
}

func (b *box) says(op, network, address, want string) {
	b.h.Helper()
	if got := ask[string](b, order{Op: op, Network: network, Address: address}); got != want {
		b.h.Errorf("box %s, %s %s %s: %s, want %s", b.plan.Name, op, network, address, got, want)
	}
}

func (b *box) reaches(network, address string, want bool) {
	b.h.Helper()
	if o := ask[netlab.Outcome](b, order{Op: "dial", Network: network, Address: address}); o.OK() != want {
		b.h.Errorf("box %s, %s %s: %v, want %t", b.plan.Name, network, address, o, want)
	}
}

func rules(texts ...string) api.Policy {
	p := api.Policy{Egress: api.EgressRules}
	for _, text := range texts {
		f := strings.Fields(text)
		p.Rules = append(p.Rules, api.Rule{To: f[0], Ports: f[1], Protocol: api.Protocol(f[2])})
	}
	return p
}

func word(err error) string {
	var errno unix.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "silence"
	}
	return err.Error()
}

// talk sends an octet on a flow and waits for the echo.
func talk(c net.Conn) string {
	c.SetDeadline(time.Now().Add(time.Second))
	_, err := c.Write([]byte("x"))
	if err == nil {
		_, err = io.ReadFull(c, make([]byte, 1))
	}
	return word(err)
}

// serve echoes until the process ends.
func serve(network, address string) string {
	if network == "udp" {
		pc, err := net.ListenPacket(network, address)
		if err != nil {
			return word(err)
		}
		go func() {
			buf := make([]byte, 16<<10)
			for {
				n, from, err := pc.ReadFrom(buf)
				if errors.Is(err, net.ErrClosed) {
					return
				}
				if err == nil {
					pc.WriteTo(buf[:n], from)
				}
			}
		}()
		return "ok"
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return word(err)
	}
	go echo(l, nil)
	return "ok"
}

// echo tells how each of its connections ends.
func echo(l net.Listener, told chan<- string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_, err := io.Copy(c, c)
			if told != nil {
				told <- word(err)
			}
		}()
	}
}
