package localhosttest

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/gominimal/minhost/verify/netlab"
)

// MPTCP sockets, which every listener of a Go program is, are shown what they asked for too: by the listener,
// by the connection it accepts from MPTCP and from plain TCP, and by the client.
func TestMultipath(t *testing.T) {
	if _, err := os.Stat("/proc/sys/net/mptcp/enabled"); err != nil {
		t.Skip("SKIP root: no MPTCP in this kernel")
	}
	w := newTown(t)
	leaf := w.box(1, nil)
	for _, c := range []struct{ listen, dial, want string }{
		{"127.0.0.1:3000", "127.0.0.1:3000", "listener 127.0.0.1:3000 accepted 127.0.0.1:3000 from 127.0.0.1 client 127.0.0.1 to 127.0.0.1:3000"},
		{"0.0.0.0:3001", "127.0.0.1:3001", "listener [::]:3001 accepted 127.0.0.1:3001 from 127.0.0.1 client 127.0.0.1 to 127.0.0.1:3001"},
		{"[::1]:3002", "[::1]:3002", "listener [::1]:3002 accepted [::1]:3002 from ::1 client ::1 to [::1]:3002"},
	} {
		for _, multipath := range []string{"true", "false"} {
			if got := netlab.InLeaf(t, leaf, "multipath", c.listen, c.dial, multipath); got != c.want {
				t.Errorf("%s, client with MPTCP %s:\n%s, want\n%s", c.listen, multipath, got, c.want)
			}
		}
	}
}

// multipathChild listens with MPTCP, dials itself with or without, and prints the names of all.
func multipathChild(args []string) int {
	err := func() error {
		var lc net.ListenConfig
		lc.SetMultipathTCP(true)
		l, err := lc.Listen(context.Background(), "tcp", args[0])
		if err != nil {
			return err
		}
		defer l.Close()
		var d net.Dialer
		d.SetMultipathTCP(args[2] == "true")
		c, err := d.Dial("tcp", args[1])
		if err != nil {
			return err
		}
		defer c.Close()
		a, err := l.Accept()
		if err != nil {
			return err
		}
		defer a.Close()
		host := func(a net.Addr) string { return a.(*net.TCPAddr).IP.String() }
		fmt.Printf("listener %v accepted %v from %v client %v to %v", l.Addr(), a.LocalAddr(), host(a.RemoteAddr()), host(c.LocalAddr()), c.RemoteAddr())
		return nil
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
