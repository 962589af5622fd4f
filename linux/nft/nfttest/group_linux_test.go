package nfttest

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

// TestReusePortGroup: sockets of the same account share a port by SO_REUSEPORT, across boxes and with the host. Each
// packet goes to one of them by its addresses and ports, and the table asks the very one that will have it: so no member
// receives what its own box does not let in, also where it asks for all that its processor handles (SO_INCOMING_CPU, a
// preference since Linux 6.2), and none answers for another.
func TestReusePortGroup(t *testing.T) {
	for _, network := range []string{"udp", "tcp"} {
		t.Run(network, func(t *testing.T) {
			l := newLab(t)
			l.belt()
			l.shares(newOutside(l), network)
		})
	}
}

func (l *lab) shares(o *outside, network string) {
	l.Helper()
	t, tries := l.TB, 60
	open, closed := deny(), deny()
	open.Ingress, closed.Ingress = "any", "none"
	leaves := map[string]*box{"box that all may reach": l.box(open), "box that this host may reach": l.box(deny()), "closed box": l.box(closed)}
	for _, greedy := range []string{"", "closed box", "box that this host may reach"} {
		members := map[string]*netlab.Proc{"host": netlab.Start(t, netlab.Spawn{Leaf: netlab.NoLeaf}, "member", network, "0", "")}
		for name, b := range leaves {
			cpu := "0"
			if name == greedy {
				cpu = "1"
			}
			members[name] = netlab.Start(t, netlab.Spawn{Leaf: b.FD()}, "member", network, cpu, o.far()+":7777")
		}
		for _, m := range members {
			m.Line()
		}
		ask := func() map[string]int {
			out := map[string]int{}
			for name, m := range members {
				m.Say("how many")
				n, err := strconv.Atoi(m.Line())
				l.must(err)
				out[name] = n
			}
			return out
		}
		knock(network, "127.0.0.1:9100", tries)
		fromHost := ask()
		o.do(func() { knock(network, o.near()+":9100", tries) })
		fromOutside := ask()
		stranger := l.box(deny())
		netlab.InLeaf(t, stranger.FD(), "knock", network, "127.0.0.1:9100", strconv.Itoa(tries))
		fromBox := ask()
		t.Logf("%s, %q asks for all: from the host %v, from outside %v, from a box %v", network, greedy, fromHost, fromOutside, fromBox)
		for from, got := range map[string]map[string]int{"the host": fromHost, "outside": fromOutside, "a box": fromBox} {
			for name, n := range got {
				may := name == "host" && from != "a box" || name == "box that all may reach" && from != "a box" ||
					name == "box that this host may reach" && from == "the host"
				if n != 0 && !may {
					t.Errorf("%s, %q asks for all: %d from %s reached the %s", network, greedy, n, from, name)
				}
			}
			if greedy == "" && from != "a box" && (got["host"] == 0 || got["box that all may reach"] == 0) {
				t.Errorf("%s from %s: %v", network, from, got)
			}
		}
		for name, m := range members {
			if said := m.Stop(); name != "host" && said != "EPERM\n" && said != "ECONNREFUSED\n" {
				t.Errorf("%s from the shared port of the %s: %s", network, name, said)
			}
		}
		l.must(l.table.Delete(l.ctx(), stranger.Verdict))
	}
}

// knock sends so many datagrams, or opens so many connections, each from a port of its own.
func knock(network, address string, n int) {
	for range n {
		netlab.Dial{Network: network, Address: address, Timeout: netlab.Patience(20 * time.Millisecond)}.Do()
	}
}

func knockChild(args []string) int {
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return 2
	}
	knock(args[0], args[1], n)
	return 0
}

// memberChild is one of those who share port 9100: it answers, and says for each line of its input how many came
// since; greedy ones have a socket for each processor. At the end it says what becomes of sending to another host from
// that port.
func memberChild(args []string) int {
	network, greedy, to := args[0], args[1] == "1", args[2]
	var came atomic.Int64
	sockets := 1
	if greedy {
		sockets = runtime.NumCPU()
	}
	for cpu := range sockets {
		fd, err := shared(network, 9100)
		if err == nil && greedy {
			err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_INCOMING_CPU, cpu)
		}
		if err != nil {
			fmt.Println(err)
			return 1
		}
		go receive(network, fd, &came)
	}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(came.Swap(0))
	}
	if to == "" {
		return 0
	}
	fd, err := shared(network, 9100)
	if err == nil {
		a := netip.MustParseAddrPort(to)
		if err = unix.Connect(fd, &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}); err == nil {
			_, err = unix.Write(fd, []byte("x"))
		}
	}
	fmt.Println(errnoWord(err))
	return 0
}

// shared binds a port with others, and listens.
func shared(network string, port int) (int, error) {
	kind := unix.SOCK_DGRAM
	if network == "tcp" {
		kind = unix.SOCK_STREAM
	}
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: port})
	}
	return fd, err
}

func receive(network string, fd int, came *atomic.Int64) {
	if network == "udp" {
		for {
			_, from, err := unix.Recvfrom(fd, make([]byte, 10), 0)
			if err != nil {
				continue // what others refused
			}
			came.Add(1)
			_ = unix.Sendto(fd, []byte("y"), 0, from)
		}
	}
	if err := unix.Listen(fd, 100); err != nil {
		fmt.Println(err)
		return
	}
	for {
		c, _, err := unix.Accept(fd)
		if err != nil {
			continue
		}
		came.Add(1)
		_, _ = unix.Write(c, []byte("y"))
		unix.Close(c)
	}
}
