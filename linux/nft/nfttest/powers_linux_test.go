package nfttest

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/linux/sockdiag"
	"github.com/gominimal/minhost/verify/netlab"
)

// account is an unprivileged one.
const account = 61234

// TestPowers: from a box an account ends no socket of the host's (SOCK_DESTROY), though it may list them, and makes no
// connection without a handshake (TCP_REPAIR). Root in a box does the latter; what it writes is judged as anything is.
func TestPowers(t *testing.T) {
	l := newLab(t)
	l.belt()
	o := newOutside(l)
	o.echo("tcp", ":8000")
	service := netlab.Echo(t, "tcp", "127.0.0.1:0", 0)
	b := l.box(deny())
	victim, err := net.DialTimeout("tcp", o.far()+":8000", netlab.Patience(time.Second))
	l.must(err)
	t.Cleanup(func() { victim.Close() })
	for _, c := range []struct {
		uid  uint32
		what []string
		want string
	}{
		{account, []string{"destroy", victim.LocalAddr().String()}, "EPERM\n"},
		{account, []string{"repair", o.far() + ":8000"}, "EPERM\n"},
		{0, []string{"repair", o.far() + ":8000"}, "ECONNRESET\n"},
		{0, []string{"repair", service}, "ECONNRESET\n"},
	} {
		var wire int
		o.do(func() { wire = wireOf(l) })
		if got := netlab.Start(t, netlab.Spawn{Leaf: b.FD(), UID: c.uid}, "powers", c.what...).Stop(); got != c.want {
			t.Errorf("%v as %d: %s", c.what, c.uid, got)
		}
		if n := drain(wire); n != 0 {
			t.Errorf("%v as %d: %d packets on the wire", c.what, c.uid, n)
		}
	}
	if got := octet(victim); got != "ok" {
		t.Errorf("the host's connection: %s", got)
	}
}

func powersChild(args []string) int {
	at := netip.MustParseAddrPort(args[1])
	switch args[0] {
	case "destroy":
		fmt.Println(errnoWord(destroys(at)))
	case "repair":
		fmt.Println(errnoWord(repaired(at)))
	}
	return 0
}

// destroys ends the socket that is bound there.
func destroys(at netip.AddrPort) error {
	diag, err := sockdiag.Open()
	if err != nil {
		return err
	}
	defer diag.Close()
	all, err := diag.List(context.Background(), sockdiag.Every, sockdiag.Every)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Local == at {
			return diag.Destroy(context.Background(), s)
		}
	}
	return fmt.Errorf("%d sockets and none at %s", len(all), at)
}

// repaired writes on a connection that no peer knows of.
func repaired(to netip.AddrPort) error {
	fd, err := socketOf(unix.AF_INET, unix.SOCK_STREAM, 0, true)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	sa, _ := sockaddrOf(to)
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_REPAIR, 1); err != nil {
		return err
	}
	if err := unix.Connect(fd, sa); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_REPAIR, 0); err != nil {
		return err
	}
	return dialled(fd, nil)
}
