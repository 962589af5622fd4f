package boxes

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/verify/e2e/rig"
	"github.com/gominimal/minhost/verify/netlab"
)

// TestOwnLocalhost: two boxes on one port, each found by itself as localhost and by the host at its address;
// a sibling is refused, by address, and the host's own service behind host.min.internal too, until a rule
// admits it.
func TestOwnLocalhost(t *testing.T) {
	h := newHost(t)
	at := netlab.Echo(t, "tcp", "127.0.0.1:0", 0) // a service of the host
	one, two, open := h.box("one", denyPolicy()), h.box("two", rules("127.0.0.1 "+portOf(at)+" tcp")), h.box("", openPolicy())
	for _, b := range []*box{one, two, open} {
		if b.plan.Localhost != api.LocalhostOwn || b.plan.LocalhostCause != "" {
			t.Fatalf("%v: localhost %q, cause %q", b, b.plan.Localhost, b.plan.LocalhostCause)
		}
		for _, network := range []string{"tcp", "udp"} {
			if got := b.serve(network, "127.0.0.1:3000"); got != "127.0.0.1:3000" {
				t.Errorf("%v serves %s at %s", b, network, got)
			}
		}
		b.serve("tcp", "[::]:3001")
	}
	if !strings.HasPrefix(open.plan.Address, "127.65.") {
		t.Errorf("a box without a name has %q", open.plan.Address)
	}
	for _, b := range []*box{one, two, open} {
		for _, network := range []string{"tcp", "udp"} {
			b.reaches(network, "127.0.0.1:3000")
			if o := (netlab.Dial{Network: network, Address: b.plan.Address + ":3000"}).Do(); !o.OK() {
				t.Errorf("host to %v, %s: %v", b, network, o)
			}
		}
		b.reaches("tcp", "[::1]:3000")
		b.reaches("tcp", "[::1]:3001")
		b.reaches("tcp", "127.0.0.1:3001")
	}
	for _, b := range []*box{one, two} {
		for _, other := range []*box{one, two, open} {
			if other != b {
				b.refused("tcp", other.plan.Address+":3000")
				b.refused("udp", other.plan.Address+":3000")
			}
		}
	}
	for _, to := range []string{at, "127.0.64.254:" + portOf(at)} {
		one.refused("tcp", to)
		two.reaches("tcp", to)
		open.reaches("tcp", to)
	}
	told := one.end().Refusals
	if !slices.ContainsFunc(told, func(r api.Refusal) bool {
		return r.Destination == "127.0.0.1" && fmt.Sprint(r.Port) == portOf(at)
	}) {
		t.Errorf("the host's service is not among the refusals: %+v", told)
	}
}

// TestImpersonation: nobody answers at the address of another box, whatever wildcard or port he has.
func TestImpersonation(t *testing.T) {
	h := newHost(t)
	victim := h.box("victim", denyPolicy())
	for name, in := range map[string]api.PlanIn{
		"shared localhost": {Name: "a", Mode: api.ModeHost, Policy: openPolicy(), Localhost: api.LocalhostShared},
		"ingress any":      {Name: "b", Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressOpen, Ingress: api.IngressAny}},
		"port 0":           {Name: "c", Mode: api.ModeHost, Policy: denyPolicy()},
	} {
		liar := h.boxOf(operatorUID, in)
		for _, network := range []string{"tcp", "udp"} {
			port := ":3100"
			if name == "port 0" {
				port = ":0"
			}
			at := liar.serve(network, "0.0.0.0"+port)
			// What a wildcard answers to a datagram comes from 127.0.0.1, as outside boxes.
			if o := (netlab.Dial{Network: network, Address: liar.plan.Address + ":" + portOf(at)}).Do(); !o.OK() && network == "tcp" {
				t.Errorf("%s: host to its own address, %s: %v", name, network, o)
			}
			if o := (netlab.Dial{Network: network, Address: victim.plan.Address + ":" + portOf(at)}).Do(); o.OK() {
				t.Errorf("%s: a box answers at the address of another (%s)", name, network)
			}
		}
		liar.end()
	}
}

// TestClientsElsewhere: what binds a wildcard before it sends works as ever, in confined boxes too.
func TestClientsElsewhere(t *testing.T) {
	h := newHost(t)
	o := h.outside()
	tcp, udp := o.echo("tcp", atPort(o.far4(), 8005)), o.echo("udp", atPort(o.far4(), 8006))
	for name, b := range map[string]*box{
		"open":   h.box("open", openPolicy()),
		"listed": h.box("listed", rules(o.far4()+" 8005 tcp", o.far4()+" 8006 udp")),
	} {
		for _, d := range []netlab.Dial{
			{Network: "udp", Address: udp, Local: "0.0.0.0:0"},
			{Network: "udp", Address: udp, Local: "0.0.0.0:123"}, // as ntp does
			{Network: "tcp", Address: tcp, Local: "0.0.0.0:0"},
			{Network: "tcp", Address: tcp},
		} {
			got := ask[netlab.Outcome](b.agent, "dial", d)
			if d.Local == "0.0.0.0:123" && got.Step == "bind" && got.Errno == unix.EACCES {
				continue // the account has no capability for the port: as outside a box
			}
			if !got.OK() {
				t.Errorf("%s, %+v: %v", name, d, got)
			}
		}
		for _, program := range [][]string{
			{"/usr/bin/python3", "-c", "import socket,sys; s=socket.create_connection((sys.argv[1],8005),5,source_address=('',0)); s.sendall(b'x'); assert s.recv(1)==b'x'", o.far4()},
			{"/usr/bin/node", "-e", "const s=require('dgram').createSocket('udp4'); s.on('message',()=>process.exit(0)); s.bind(0,()=>s.send('x',8006,process.argv[1])); setTimeout(()=>process.exit(7),5000)", o.far4()},
			{"/usr/bin/python3", "-c", "import socket,sys; s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.bind(('',int(sys.argv[2]))); s.settimeout(5); s.sendto(b'x',(sys.argv[1],8006)); assert s.recvfrom(1)[0]==b'x'", o.far4(), map[string]string{"open": "4123", "listed": "4124"}[name]},
		} {
			out := ask[struct {
				Status int
				Text   string
			}](b.agent, "exec", program)
			if out.Status != 0 {
				t.Errorf("%s, %q: status %d, %s", name, program, out.Status, out.Text)
			}
		}
	}
}

// lookupProgram asks as any program does. With musl's resolver, which binds a wildcard and checks whom the answer
// comes from.
const lookupProgram = `#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
int main(int n, char **v) {
	struct addrinfo *a; char t[64];
	int e = getaddrinfo(v[1], 0, 0, &a);
	if (e) return puts(gai_strerror(e)), 1;
	puts(inet_ntop(AF_INET, &((struct sockaddr_in *)a->ai_addr)->sin_addr, t, sizeof t));
}
`

// TestMuslLookups: in a confined box, whose lookups are redirected, before and behind a DNS server of its own on
// another port.
func TestMuslLookups(t *testing.T) {
	if _, err := exec.LookPath("musl-gcc"); err != nil {
		t.Skip("SKIP apps: no musl-gcc")
	}
	h := newHost(t)
	h.must(os.WriteFile("/run/lookup.c", []byte(lookupProgram), 0o644))
	h.run("musl-gcc", "-static", "-o", "/run/lookup", "/run/lookup.c")
	h.must(os.WriteFile("/etc/resolv.conf", []byte("nameserver 127.0.0.1\n"), 0o644))
	b := h.box("musl", denyPolicy())
	b.serve("udp", "127.0.0.1:5353")
	for name, want := range map[string]string{"musl.min.internal": b.plan.Address, "host.min.internal": "127.0.64.254"} {
		// The answerer reads a name after it was written, some milliseconds where nobody else wants a core.
		h.within(5*time.Second, name, func() error {
			out := ask[struct {
				Status int
				Text   string
			}](b.agent, "exec", []string{"/run/lookup", name})
			if out.Status != 0 || strings.TrimSpace(out.Text) != want {
				return fmt.Errorf("status %d, %q; want %s", out.Status, out.Text, want)
			}
			return nil
		})
	}
}

// TestInputHalfEmptied: somebody empties the input half of the table alone, again and again, under a helper that mends
// it, and once without one. No datagram of a deny-all box arrives at a service of the host, asked for or not.
func TestInputHalfEmptied(t *testing.T) {
	h := newHost(t)
	service, err := net.ListenPacket("udp", "127.0.0.1:0")
	h.must(err)
	defer service.Close()
	var heard atomic.Int64
	go func() {
		for buf := make([]byte, 64); ; heard.Add(1) {
			if _, _, err := service.ReadFrom(buf); err != nil {
				return
			}
		}
	}()
	at := []place{{"udp", service.LocalAddr().String()}}
	deny := h.box("d", denyPolicy())
	ask[bool](deny.agent, "probe", dials(at, 10*time.Millisecond))
	empty := func() {
		h.run("/usr/sbin/nft", "flush", "chain", "inet", "minhost", "in")
		time.Sleep(50 * time.Millisecond)
	}
	for range rounds {
		empty()
	}
	for _, p := range rig.Processes(t) {
		if p.Role() == "supervise" || p.Role() == "helper" {
			syscall.Kill(p.PID, syscall.SIGSTOP)
			defer syscall.Kill(p.PID, syscall.SIGCONT)
		}
	}
	for range 5 {
		empty()
	}
	h.never("deny-all box", ask[tally](deny.agent, "halt", struct{}{}))
	if n := heard.Load(); n != 0 {
		t.Errorf("%d datagrams arrived", n)
	}
	if o := (netlab.Dial{Network: "udp", Address: at[0].address}).Do(); heard.Load() == 0 {
		t.Errorf("a process of the host is not heard: %v", o)
	}
}
