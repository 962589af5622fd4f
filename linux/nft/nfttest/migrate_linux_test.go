package nfttest

import (
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

// TestMigratedConnection: a connection that nobody has accepted ends with its listener. Only where an admin has switched
// net.ipv4.tcp_migrate_req on (Linux 5.14) it moves to another listener of the SO_REUSEPORT group, and keeps the cgroup of
// the one that it came to: a box that is left a host's has the host's verdict, for good. No hook sees that, so verify warns.
func TestMigratedConnection(t *testing.T) {
	const onOff = "/proc/sys/net/ipv4/tcp_migrate_req"
	for value, want := range map[string]string{"0": "accept: silence\n", "1": "write: ok\nelsewhere: ok\n"} {
		t.Run(value, func(t *testing.T) {
			if _, err := os.Stat(onOff); err != nil {
				t.Skip("this kernel has no", onOff)
			}
			l := newLab(t)
			l.must(os.WriteFile(onOff, []byte(value), 0o644))
			t.Cleanup(func() { l.must(os.WriteFile(onOff, []byte("0"), 0o644)) })
			if got := l.inheritsConnection(); got != want {
				t.Errorf("the box says %q, want %q", got, want)
			}
		})
	}
}

// inheritsConnection closes a listener of the host beside one of a deny-all box.
func (l *lab) inheritsConnection() string {
	l.Helper()
	l.belt()
	o := newOutside(l)
	o.echo("tcp", ":8000")
	b := l.box(deny())
	service, err := shared("tcp", 9100)
	l.must(err)
	l.must(unix.Listen(service, 10))
	var client int
	o.do(func() {
		client = descriptor(socketOf(unix.AF_INET, unix.SOCK_STREAM, 0, false))
		l.must(unix.Connect(client, &unix.SockaddrInet4{Port: 9100, Addr: netip.MustParseAddr(o.near()).As4()}))
	})
	l.Cleanup(func() { unix.Close(client) })
	p := netlab.Start(l, netlab.Spawn{Leaf: b.FD()}, "heir", o.far()+":8000")
	p.Line()
	l.must(unix.Close(service))
	return p.Stop()
}

// heirChild listens at port 9100 with others, and says what it can do with a connection that it is left.
func heirChild(args []string) int {
	fd, err := shared("tcp", 9100)
	if err == nil {
		err = unix.Listen(fd, 10)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	tv := unix.NsecToTimeval(netlab.Patience(time.Second).Nanoseconds())
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	c, _, err := unix.Accept(fd)
	if err != nil {
		fmt.Println("accept:", errnoWord(err))
		return 0
	}
	_, err = unix.Write(c, []byte("x"))
	fmt.Println("write:", errnoWord(err))
	var unspec unix.RawSockaddr // AF_UNSPEC
	unix.Syscall(unix.SYS_CONNECT, uintptr(c), uintptr(unsafe.Pointer(&unspec)), unsafe.Sizeof(unspec))
	a := netip.MustParseAddrPort(args[0])
	err = unix.Connect(c, &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())})
	if err == nil {
		if _, err = unix.Write(c, []byte("x")); err == nil {
			err = answer(c)
		}
	}
	fmt.Println("elsewhere:", errnoWord(err))
	return 0
}
