package listeners

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Messages, attributes and states of inet_diag (linux/inet_diag.h, linux/sock_diag.h, net/tcp_states.h).
const (
	diagByFamily = 20
	diagCgroup   = 21 // INET_DIAG_CGROUP_ID, Linux 5.9
	diagSocketID = 48 // struct inet_diag_sockid
	diagMessage  = 72 // struct inet_diag_msg
	stateClose   = 7  // a UDP socket that is not connected
	stateListen  = 10
)

// patience ends a listing whose context has no end.
const patience = 5 * time.Second

// Socket waits for peers. A wildcard address is 0.0.0.0 or ::.
type Socket struct {
	UDP    bool
	Local  netip.AddrPort
	Cgroup uint64 // 0 when the kernel does not tell it
}

// Lister asks over one lasting connection: closing one costs 10 to 20 ms. Its methods may be called
// concurrently; they take turns.
type Lister struct {
	mu sync.Mutex
	nl *netlink.Conn
}

// New opens the connection.
func New() (*Lister, error) {
	nl, err := dial()
	return &Lister{nl: nl}, err
}

func dial() (*netlink.Conn, error) {
	nl, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		return nil, fmt.Errorf("open sock_diag: %w", err)
	}
	return nl, nil
}

// Close gives the connection back.
func (l *Lister) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.nl == nil {
		return nil
	}
	err := l.nl.Close()
	l.nl = nil
	return err
}

// List returns the sockets that wait now, in the kernel's order. A port that a UDP client was given by
// the kernel is not told from a server's here.
func (l *Lister) List(ctx context.Context) ([]Socket, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Socket
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		for _, q := range []struct {
			protocol uint8
			state    uint32
		}{{unix.IPPROTO_TCP, stateListen}, {unix.IPPROTO_UDP, stateClose}} {
			answers, err := l.ask(ctx, request(family, q.protocol, 1<<q.state))
			if errors.Is(err, unix.ENOENT) {
				continue // no such family or protocol in this kernel: no such sockets
			}
			if err != nil {
				return nil, fmt.Errorf("list listeners: %w", err)
			}
			for _, a := range answers {
				if s, ok := parse(a.Data, q.protocol == unix.IPPROTO_UDP); ok {
					out = append(out, s)
				}
			}
		}
	}
	return out, nil
}

// ask sends one request. After an error the connection is opened anew, so that a late answer never
// meets the next request.
func (l *Lister) ask(ctx context.Context, data []byte) (answers []netlink.Message, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if l.nl == nil {
		if l.nl, err = dial(); err != nil {
			return nil, err
		}
	}
	end, ok := ctx.Deadline()
	if !ok {
		end = time.Now().Add(patience)
	}
	if err := l.nl.SetDeadline(end); err != nil {
		return nil, err
	}
	answers, err = l.nl.Execute(netlink.Message{
		Header: netlink.Header{Type: diagByFamily, Flags: netlink.Request | netlink.Dump}, Data: data})
	if err != nil && !errors.Is(err, unix.ENOENT) {
		l.nl.Close()
		l.nl = nil
	}
	return answers, err
}

// request is struct inet_diag_req_v2 for every socket of these states.
func request(family, protocol uint8, states uint32) []byte {
	b := binary.NativeEndian.AppendUint32([]byte{family, protocol, 0, 0}, states)
	return append(b, make([]byte, diagSocketID)...)
}

// parse reads struct inet_diag_msg and its attributes; false for what is not bound, and for garbage.
func parse(b []byte, udp bool) (Socket, bool) {
	if len(b) < diagMessage {
		return Socket{}, false
	}
	port := binary.BigEndian.Uint16(b[4:])
	var addr netip.Addr
	if b[0] == unix.AF_INET {
		addr = netip.AddrFrom4([4]byte(b[8:12]))
	} else {
		addr = netip.AddrFrom16([16]byte(b[8:24])).Unmap()
	}
	s := Socket{UDP: udp, Local: netip.AddrPortFrom(addr, port)}
	ad, err := netlink.NewAttributeDecoder(b[diagMessage:])
	if err != nil {
		return Socket{}, false
	}
	for ad.Next() {
		if ad.Type() == diagCgroup && len(ad.Bytes()) == 8 {
			s.Cgroup = binary.NativeEndian.Uint64(ad.Bytes())
		}
	}
	return s, port != 0 && ad.Err() == nil
}

// ClientPorts is the range that the kernel gives ports to clients from (ip(7), ip_local_port_range).
func ClientPorts() (first, last uint16, err error) {
	const file = "/proc/sys/net/ipv4/ip_local_port_range"
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, fmt.Errorf("client ports: %w", err)
	}
	if _, err := fmt.Sscan(string(b), &first, &last); err != nil {
		return 0, 0, fmt.Errorf("client ports: %s: %w", file, err)
	}
	return first, last, nil
}
