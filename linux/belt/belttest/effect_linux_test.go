package belttest

import (
	"encoding/binary"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

const (
	approve = 0x40000000
	lease   = 0x20000000
	admit   = 0x08000000
)

var everywhere = []struct{ network, address string }{
	{"tcp", "127.0.0.1:0"}, {"udp", "127.0.0.1:0"}, {"tcp", "[::1]:0"}, {"udp", "[::1]:0"},
}

// Without any table: a box reaches nothing on loopback, a process outside is untouched.
func TestClosedWithoutTable(t *testing.T) {
	leaf, _ := worn(t)
	if err := os.Mkdir(leaf.Path()+"/below", 0o755); err != nil {
		t.Fatal(err)
	}
	below, err := os.Open(leaf.Path() + "/below")
	if err != nil {
		t.Fatal(err)
	}
	defer below.Close()
	tree := netlab.Tree(t)
	for _, e := range everywhere {
		at := netlab.Echo(t, e.network, e.address, 0)
		d := netlab.Dial{Network: e.network, Address: at, Timeout: 200 * time.Millisecond}
		if o := d.From(t, netlab.NoLeaf); !o.OK() {
			t.Errorf("outside, %s %s: %v", e.network, at, o)
		}
		for name, fd := range map[string]int{"leaf": leaf.FD(), "sub-cgroup": int(below.Fd()), "boxes itself": boxes(t, tree)} {
			o := d.From(t, fd)
			// UDP hears of the drop at once, TCP not at all: its packets are sent again.
			if wantErr := map[string]syscall.Errno{"tcp": unix.ETIMEDOUT, "udp": unix.EPERM}[e.network]; o.Errno != wantErr {
				t.Errorf("%s, %s %s: %v", name, e.network, at, o)
			}
		}
	}
}

// What the table does for an approved flow, done here by one rule: the bits open both ways, each for
// its own direction only.
func TestBitsOpen(t *testing.T) {
	leaf, _ := worn(t)
	for _, e := range everywhere {
		both := netlab.Echo(t, e.network, e.address, admit)
		plain := netlab.Echo(t, e.network, e.address, 0)
		for _, c := range []struct {
			name string
			to   string
			mark uint32
			ok   bool
		}{
			{"approved, answer admitted", both, approve, true},
			{"approved, answer not admitted", plain, approve, false},
			{"not approved, answer admitted", both, 0, false},
			{"other bits only", both, ^uint32(approve), false},
			{"approved, other bits kept", both, approve | 0x00ff0001, true},
			{"approved with the lease, over lo", both, approve | lease, true},
		} {
			marking(t, "dport", c.to, c.mark)
			d := netlab.Dial{Network: e.network, Address: c.to, Timeout: 150 * time.Millisecond}
			if o := d.From(t, leaf.FD()); o.OK() != c.ok {
				t.Errorf("%s %s, %s: %v", e.network, c.to, c.name, o)
			}
		}
	}
}

// A server in a box: its SYN-ACK needs no mark, what comes in needs one, what it says then too.
func TestServerInBox(t *testing.T) {
	leaf, _ := worn(t)
	for _, e := range everywhere {
		may, _ := netlab.EchoIn(t, netlab.Spawn{Leaf: leaf.FD()}, e.network, e.address, 0)
		marking(t, "sport", may, approve)
		mute, _ := netlab.EchoIn(t, netlab.Spawn{Leaf: leaf.FD()}, e.network, e.address, 0)
		for _, c := range []struct {
			to   string
			mark uint32
			step string
		}{
			{may, admit, ""},
			{may, 0, map[string]string{"tcp": "connect", "udp": "receive"}[e.network]},
			// The handshake is done, the first data is stopped: that was the SYN-ACK.
			{mute, admit, "receive"},
		} {
			d := netlab.Dial{Network: e.network, Address: c.to, Mark: c.mark, Timeout: 150 * time.Millisecond}
			if o := d.Do(); o.Step != c.step {
				t.Errorf("%s %s mark %#x: %v, want it to stop at %q", e.network, c.to, c.mark, o, c.step)
			}
		}
	}
}

// The egress program takes its bit off, or the receiver's side would see it.
func TestBitIsTakenOff(t *testing.T) {
	leaf, _ := worn(t)
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	raw, err := l.(*net.UDPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVMARK, 1) })
	if err != nil {
		t.Fatal(err)
	}
	const mark = approve | admit | 0x1234
	marking(t, "dport", l.LocalAddr().String(), mark)
	netlab.Dial{Network: "udp", Address: l.LocalAddr().String(), Timeout: 50 * time.Millisecond}.From(t, leaf.FD())
	l.SetReadDeadline(time.Now().Add(2 * time.Second))
	buf, oob := make([]byte, 16), make([]byte, 128)
	_, n, _, _, err := l.(*net.UDPConn).ReadMsgUDP(buf, oob)
	if err != nil {
		t.Fatal(err)
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(msgs) != 1 || msgs[0].Header.Type != unix.SO_MARK {
		t.Fatalf("%v, %v", msgs, err)
	}
	if got := binary.NativeEndian.Uint32(msgs[0].Data); got != mark&^approve {
		t.Errorf("mark %#x arrived, want %#x", got, mark&^uint32(approve))
	}
}

// What claims to go to the box itself must leave by lo, also when a NAT rule of somebody else turned it
// around.
func TestLeaseOnlyOverLo(t *testing.T) {
	leaf, _ := worn(t)
	far := netlab.Start(t, netlab.Spawn{Leaf: netlab.NoLeaf, Cloneflags: syscall.CLONE_NEWNET}, "far")
	far.Line()
	ip(t, "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", strconv.Itoa(far.PID()))
	ip(t, "addr", "add", "10.99.0.1/24", "dev", "near")
	ip(t, "link", "set", "near", "up")
	far.Line()
	send := func(mark uint32) {
		marking(t, "dport", "10.99.0.2:4000", mark)
		netlab.Dial{Network: "udp", Address: "10.99.0.2:4000", Timeout: 20 * time.Millisecond}.From(t, leaf.FD())
	}
	send(approve)
	far.Line()
	send(approve | lease)
	send(approve)
	far.Line()
	if rest := far.Stop(); rest != "" {
		t.Errorf("a packet with the lease bit left by a veth: %q", rest)
	}
}

func ip(t testing.TB, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %q: %v: %s", args, err, out)
	}
}

// A namespace made inside a box keeps its loopback and all socket options.
func TestNamespaceInBox(t *testing.T) {
	leaf, _ := worn(t)
	out := netlab.Start(t, netlab.Spawn{Leaf: leaf.FD(), Cloneflags: syscall.CLONE_NEWNET}, "inner").Stop()
	if want := strings.Repeat("0\n", len(everywhere)+2); out != want {
		t.Errorf("%q", out)
	}
}

func TestOptions(t *testing.T) {
	leaf, _ := worn(t)
	ask := func(leaf int) (out []syscall.Errno) {
		if err := json.Unmarshal([]byte(netlab.InLeaf(t, leaf, "options")), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	in, out := ask(leaf.FD()), ask(netlab.NoLeaf)
	for i, o := range options() {
		if out[i] == unix.EPERM || (o.works && out[i] != 0) {
			t.Errorf("%s outside: %v", o.name, out[i])
		}
		want := out[i]
		if o.refused {
			want = unix.EPERM
		}
		if in[i] != want {
			t.Errorf("%s in the leaf: %v, want %v", o.name, in[i], want)
		}
	}
}

// A process that leaves the leaf (root moved it) does not take its sockets out of the belt.
func TestSocketKeepsItsLeaf(t *testing.T) {
	leaf, _ := worn(t)
	port, count := sink(t)
	p := netlab.Start(t, netlab.Spawn{Leaf: leaf.FD()}, "flood", port, "200")
	p.Line()
	if err := os.WriteFile("/sys/fs/cgroup/cgroup.procs", []byte(strconv.Itoa(p.PID())), 0); err != nil {
		t.Fatal(err)
	}
	if sent := atoi(t, p.Stop()); sent < 100 {
		t.Errorf("only %d datagrams tried", sent)
	}
	if n := count(); n != 0 {
		t.Errorf("%d datagrams arrived", n)
	}
}

// sink counts the datagrams that reach it; count also closes it.
func sink(t testing.TB) (port string, count func() int) {
	t.Helper()
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n, done := 0, make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 16)
		for {
			if _, _, err := l.ReadFrom(buf); err != nil {
				return
			}
			n++
		}
	}()
	_, port, _ = net.SplitHostPort(l.LocalAddr().String())
	return port, func() int {
		l.SetReadDeadline(time.Now().Add(20 * time.Millisecond)) // what is queued is read first
		<-done
		l.Close()
		return n
	}
}

func atoi(t testing.TB, s string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
