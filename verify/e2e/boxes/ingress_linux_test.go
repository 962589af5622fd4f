package boxes

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/verify/netlab"
)

// TestIngress is who reaches the listeners of a box.
func TestIngress(t *testing.T) {
	h := newHost(t)
	o := h.outside()
	open := h.box("opener", openPolicy())
	listed := h.box("lister", rules("127.0.0.0/8 any", o.near4()+" any", o.near6()+" any"))
	for _, c := range []struct {
		name                  string
		ingress               api.Ingress
		ports                 []int
		host, far, farOther   bool // farOther: the port that is not declared
		boxes, boxesUndeclare bool
	}{
		{name: "absent", host: true},
		{name: "host", ingress: api.IngressHost, host: true},
		{name: "any", ingress: api.IngressAny, host: true, far: true, farOther: true, boxes: true, boxesUndeclare: true},
		{name: "none", ingress: api.IngressNone},
		{name: "ports", ingress: api.IngressPorts, ports: []int{3400}, host: true, far: true, boxes: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &host{t}
			p := denyPolicy()
			p.Ingress, p.IngressPorts = c.ingress, c.ports
			// With a localhost of its own a wildcard is bound to the box's address alone.
			in := planIn("in-"+c.name, p)
			in.Localhost = api.LocalhostShared
			b := h.boxOf(operatorUID, in)
			for _, network := range []string{"tcp", "udp"} {
				for _, a := range []string{"0.0.0.0:3400", "0.0.0.0:3401", atPort(o.near6(), 3400), atPort(o.near6(), 3401)} {
					b.serve(network, a)
				}
				for _, near := range []string{o.near4(), o.near6()} {
					h.outcome("this host", c.host, netlab.Dial{Network: network, Address: atPort(near, 3400)}.Do(), network, near)
					h.outcome("this host", c.host, netlab.Dial{Network: network, Address: atPort(near, 3401)}.Do(), network, near)
					h.outcome("another host", c.far, o.dial(network, atPort(near, 3400)), network, near)
					h.outcome("another host, other port", c.farOther, o.dial(network, atPort(near, 3401)), network, near)
					h.outcome("open box", c.boxes, open.dial(network, atPort(near, 3400)), network, near)
					h.outcome("open box, other port", c.boxesUndeclare, open.dial(network, atPort(near, 3401)), network, near)
					h.outcome("listed box", c.boxes, listed.dial(network, atPort(near, 3400)), network, near)
					h.outcome("itself", true, b.dial(network, atPort(near, 3400)), network, near)
				}
			}
			h.outcome("this host", c.host, netlab.Dial{Network: "tcp", Address: atPort(b.plan.Address, 3401)}.Do(), "tcp", b.plan.Address)
			deny := h.box("deny-"+c.name, denyPolicy())
			h.outcome("deny-all box", false, deny.dial("tcp", atPort(b.plan.Address, 3400)), "tcp", b.plan.Address)
			h.outcome("deny-all box", false, deny.dial("udp", atPort("127.0.0.1", 3400)), "udp", "127.0.0.1")
		})
	}
}

// outcome requires success, or a refusal at once. Of a datagram another host may not be told: the
// kernel sends it one ICMP error a second (icmp_ratelimit).
func (h *host) outcome(who string, want bool, got netlab.Outcome, network, address string) {
	h.Helper()
	switch {
	case got.OK() != want:
		h.Errorf("%s, %s %s: %v; want ok %v", who, network, address, got, want)
	case !want && got.Errno == unix.ETIMEDOUT && !(network == "udp" && strings.HasPrefix(who, "another host")):
		h.Errorf("%s, %s %s: %v; want an answer at once", who, network, address, got)
	}
}

// TestFriend: an outside host sends to a closed port of this host, which connection tracking
// remembers; a deny-all box that binds the port then has no way out by it.
func TestFriend(t *testing.T) {
	h := newHost(t)
	o := h.outside()
	for i, c := range []struct {
		name    string
		ingress api.Ingress
		way     bool
	}{{"friend-host", api.IngressHost, false}, {"friend-any", api.IngressAny, true}} {
		p := denyPolicy()
		p.Ingress = c.ingress
		b := h.box(c.name, p)
		port, far := 4500+i, 4600+i
		friend := h.udpSocket(o, far)
		send := func() {
			// Errors are answers to earlier packets: the port was closed.
			unix.Sendto(friend, []byte("in"), 0, &unix.SockaddrInet4{Port: port, Addr: [4]byte{10, 99, byte(o.N), 1}})
		}
		send()
		ask[int](b.agent, "udp", map[string]any{"Do": "bind", "Port": port})
		got := 0
		for range 20 {
			ask[int](b.agent, "udp", map[string]any{"Do": "send", "Port": port, "To": atPort(o.far4(), far)})
			got += received(friend)
		}
		if got > 0 {
			t.Errorf("%s: %d packets left the box by a flow that was not admitted to it", c.name, got)
		}
		// Not even when the friend goes on sending; with ingress any the flow is admitted then.
		for range 20 {
			send()
			time.Sleep(2 * time.Millisecond)
			ask[int](b.agent, "udp", map[string]any{"Do": "send", "Port": port, "To": atPort(o.far4(), far)})
			got += received(friend)
		}
		if n := ask[int](b.agent, "udp", map[string]any{"Do": "drain", "Port": port}); (n > 0) != c.way || (got > 0) != c.way {
			t.Errorf("%s: %d packets in, %d out; want some: %v", c.name, n, got, c.way)
		}
		b.end()
	}
}

// udpSocket opens a datagram socket on the other host.
func (h *host) udpSocket(o *outside, port int) (fd int) {
	h.Helper()
	o.do(func() {
		var err error
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err == nil {
			err = unix.Bind(fd, &unix.SockaddrInet4{Port: port})
		}
		if err != nil {
			h.Error(err)
		}
	})
	h.Cleanup(func() { unix.Close(fd) })
	return fd
}

// received counts what waits at a socket.
func received(fd int) (n int) {
	time.Sleep(2 * time.Millisecond)
	for range 100 {
		if _, _, err := unix.Recvfrom(fd, make([]byte, 100), 0); err == nil {
			n++
		} else if err == unix.EAGAIN {
			return n
		}
	}
	return n
}
