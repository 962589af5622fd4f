package boxes

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/linux"
	"github.com/gominimal/minhost/verify/netlab"
)

// listen asks for a socket of the box as its operator.
func (b *box) listen(p api.Protocol, port int) (api.ListenOut, *os.File) {
	b.h.Helper()
	out, f, err := b.h.dial(operatorUID).Listen(b.h.ctx(), api.ListenIn{Lease: b.plan.Lease, Secret: b.plan.Secret, Protocol: p, Port: port})
	b.h.must(err)
	if f == nil {
		b.h.Fatal("Listen: the reply had no descriptor")
	}
	b.h.Cleanup(func() { f.Close() })
	return out, f
}

// A socket of Listen works: any port, also below 1024, TCP and UDP, whoever holds it.
func TestListen(t *testing.T) {
	h := newHost(t)
	b := h.box("ears", denyPolicy())
	out, f := b.listen(api.ProtocolTCP, 80)
	if out.Address != b.plan.Address || out.Port != 80 {
		t.Errorf("TCP: %+v", out)
	}
	l, err := net.FileListener(f)
	h.must(err)
	defer l.Close()
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			c.Write([]byte("x"))
			c.Close()
		}
	}()
	if o := (netlab.Dial{Network: "tcp", Address: out.Address + ":80"}).Do(); !o.OK() {
		t.Errorf("the host to the listener: %v", o)
	}
	b.reaches("tcp", out.Address+":80")
	h.box("other", denyPolicy()).refused("tcp", out.Address+":80")
	udp, pf := b.listen(api.ProtocolUDP, 0)
	if udp.Port == 0 {
		t.Errorf("UDP: %+v", udp)
	}
	pc, err := net.FilePacketConn(pf)
	h.must(err)
	defer pc.Close()
	echo(pc)
	if o := (netlab.Dial{Network: "udp", Address: at(udp.Address, pc.LocalAddr().String())}).Do(); !o.OK() {
		t.Errorf("the host to the UDP socket: %v", o)
	}
	var st unix.Stat_t
	h.must(unix.Fstat(int(f.Fd()), &st))
	if st.Uid != operatorUID {
		t.Errorf("the socket is of uid %d", st.Uid)
	}
}

func echo(pc net.PacketConn) {
	go func() {
		buf := make([]byte, 100)
		for n, from, err := pc.ReadFrom(buf); err == nil; n, from, err = pc.ReadFrom(buf) {
			pc.WriteTo(buf[:n], from)
		}
	}()
}

// A socket of Listen reaches nothing that the box may not, although the host holds it: not by
// connect(AF_UNSPEC) and connect, not by sendto.
func TestListenIsNoWayOut(t *testing.T) {
	h := newHost(t)
	netlab.Echo(h, "tcp", "127.0.0.1:8121", 0)
	netlab.Echo(h, "udp", "127.0.0.1:8121", 0)
	netlab.Echo(h, "tcp", "127.0.0.1:8122", 0)
	b := h.box("walls", rules("127.0.0.1 8122 tcp"))
	_, f := b.listen(api.ProtocolTCP, 0)
	again := func(port int) error {
		fd := int(f.Fd())
		unspec := unix.RawSockaddr{Family: unix.AF_UNSPEC}
		_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&unspec)), unsafe.Sizeof(unspec))
		if errno != 0 {
			t.Fatalf("connect(AF_UNSPEC): %v", errno)
		}
		tv := unix.NsecToTimeval(int64(2 * time.Second))
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv)
		return unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err := again(8121); err == nil || errors.Is(err, unix.EINVAL) {
		t.Errorf("behind connect(AF_UNSPEC), a refused port: %v", err)
	}
	if err := again(8122); err != nil {
		t.Errorf("behind connect(AF_UNSPEC), an allowed port: %v", err) // the way is one
	}
	_, u := b.listen(api.ProtocolUDP, 0)
	pc, err := net.FilePacketConn(u)
	h.must(err)
	defer pc.Close()
	if _, err := pc.WriteTo([]byte("x"), &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8121}); err == nil {
		pc.SetReadDeadline(time.Now().Add(time.Second))
		if n, from, err := pc.ReadFrom(make([]byte, 10)); err == nil {
			t.Errorf("sendto came through: %d octets from %v", n, from)
		}
	}
	// When the box is gone its socket is refused everywhere: its leaf is in no set.
	_, late := b.listen(api.ProtocolTCP, 0)
	b.end()
	f = late
	if err := again(8122); err == nil {
		t.Error("a socket of a box that has ended reached what the box might")
	}
}

// With the box its listeners end, although somebody outside holds them. The address is nobody else's until
// they are closed, since the kernel keeps what is bound.
func TestListenersEndWithTheBox(t *testing.T) {
	h := newHost(t)
	b := h.box("held", denyPolicy())
	out, f := b.listen(api.ProtocolTCP, 8124)
	l, err := net.FileListener(f)
	h.must(err)
	defer l.Close()
	accepted := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		accepted <- err
	}()
	b.end()
	select {
	case err := <-accepted:
		if err == nil {
			t.Error("a listener of a box that has ended accepted")
		}
	case <-time.After(10 * time.Second):
		t.Error("a listener of a box that has ended still waits")
	}
	if err := linux.AddressUnused(netip.MustParseAddr(out.Address)); err == nil {
		t.Error("its address is free while a socket is bound to it")
	}
	l.Close()
	f.Close()
	if err := linux.AddressUnused(netip.MustParseAddr(out.Address)); err != nil {
		t.Errorf("its address, with the socket closed: %v", err)
	}
}

// What Listen says when there is no socket.
func TestListenRefusals(t *testing.T) {
	h := newHost(t)
	b := h.box("full", denyPolicy())
	nameless, _ := h.isolated(api.PlanIn{Mode: api.ModeNone})
	b.listen(api.ProtocolTCP, 8123)
	ask := func(b *box, p api.Protocol, port int, secret string) error {
		_, f, err := h.dial(operatorUID).Listen(h.ctx(), api.ListenIn{Lease: b.plan.Lease, Secret: secret, Protocol: p, Port: port})
		if f != nil {
			t.Error("a failed call carried a descriptor")
		}
		return err
	}
	h.wants("taken", ask(b, api.ProtocolTCP, 8123, b.plan.Secret), "CannotListen")
	h.wants("no address", ask(nameless, api.ProtocolTCP, 0, nameless.plan.Secret), "CannotListen")
	h.wants("no port", ask(b, api.ProtocolTCP, 65536, b.plan.Secret), "InvalidArgument")
	h.wants("icmp", ask(b, api.ProtocolICMP, 0, b.plan.Secret), "InvalidArgument")
	h.wants("secret", ask(b, api.ProtocolTCP, 0, "guess"), "WrongSecret")
}
