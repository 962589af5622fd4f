package boxes

import (
	"net"
	"net/netip"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

func ip4(a netip.Addr) (out [4]byte) {
	if a.Is4() {
		out = a.As4()
	}
	return out
}

// sockopt tries one socket option of those that act without a packet that a rule could see.
func sockopt(name string) (string, error) {
	family := unix.AF_INET
	if name == "IPV6_JOIN_GROUP" {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	switch name {
	case "IP_ADD_MEMBERSHIP":
		err = unix.SetsockoptIPMreq(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP,
			&unix.IPMreq{Multiaddr: [4]byte{239, 1, 2, 3}, Interface: [4]byte{127, 0, 0, 1}})
	case "IPV6_JOIN_GROUP":
		err = unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP,
			&unix.IPv6Mreq{Multiaddr: netip.MustParseAddr("ff02::1234").As16(), Interface: 1})
	case "SO_ATTACH_REUSEPORT_CBPF":
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
			return "", err
		}
		code := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
		program := unix.SockFprog{Len: 1, Filter: &code[0]}
		_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF,
			uintptr(unsafe.Pointer(&program)), unsafe.Sizeof(program), 0)
		if errno != 0 {
			err = errno
		}
	default: // a control: options as such work
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	return errnoOf(err), nil
}

// detach tries to take the programs of one hook off boxes.
func detach(hook int) (string, error) {
	fd, err := unix.Open(boxesDir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	// union bpf_attr of BPF_PROG_DETACH: target, program, type, flags.
	attr := [4]uint32{uint32(fd), 0, uint32(hook), 0}
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_DETACH, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 {
		return errnoOf(errno), nil
	}
	return "", nil
}

// tally is what a prober found: attempts and successes for each destination.
type tally struct {
	Tried, Reached map[string]int
	Failed         map[string]string // the last outcome that was no success
}

// prober tries destinations without a pause, each in a loop of its own.
type prober struct {
	stop chan struct{}
	work sync.WaitGroup
	mu   sync.Mutex
	tally
}

var probing *prober

func startProbe(targets []netlab.Dial) (bool, error) {
	probing = probe(targets)
	return true, nil
}

func haltProbe(struct{}) (tally, error) { return probing.halt(), nil }

func probe(targets []netlab.Dial) *prober {
	p := &prober{stop: make(chan struct{}), tally: tally{map[string]int{}, map[string]int{}, map[string]string{}}}
	for _, d := range targets {
		p.work.Go(func() { p.try(d) })
	}
	return p
}

func (p *prober) try(d netlab.Dial) {
	key := d.Network + " " + d.Address
	for {
		select {
		case <-p.stop:
			return
		default:
		}
		var o netlab.Outcome
		if d.Network == "icmp" {
			o, _ = ping(d.Address)
		} else {
			o = d.Do()
		}
		p.mu.Lock()
		p.Tried[key]++
		if o.OK() {
			p.Reached[key]++
		} else {
			p.Failed[key] = o.String()
		}
		p.mu.Unlock()
		time.Sleep(5 * time.Millisecond) // two cores, many probers
	}
}

func (p *prober) halt() tally {
	close(p.stop)
	p.work.Wait()
	return p.tally
}

// udpSockets are the agent's, by port.
var udpSockets = map[int]*net.UDPConn{}

// udpOp binds a datagram socket, sends from it, or counts what waits at it.
func udpOp(in struct {
	Do   string
	Port int
	To   string
}) (int, error) {
	switch in.Do {
	case "bind":
		c, err := net.ListenUDP("udp4", &net.UDPAddr{Port: in.Port})
		if err != nil {
			return 0, err
		}
		udpSockets[in.Port] = c
	case "send":
		// An error is a refusal of an earlier packet: only what arrives counts.
		udpSockets[in.Port].WriteToUDPAddrPort([]byte("out"), netip.MustParseAddrPort(in.To))
	case "drain":
		return drain(udpSockets[in.Port]), nil
	}
	return 0, nil
}

// drain counts the datagrams that wait, or come within 200 ms.
func drain(c *net.UDPConn) (n int) {
	c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	for {
		if _, _, err := c.ReadFromUDP(make([]byte, 100)); err != nil {
			return n
		}
		n++
	}
}
