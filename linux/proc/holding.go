package proc

import "fmt"

// Kind sorts what a descriptor leads to.
type Kind int

const (
	Other Kind = iota
	Socket
	IOUring
)

// Holding is one descriptor that matters for a verdict.
type Holding struct {
	FD   int
	TID  int // the thread in whose table it is
	Kind Kind
	// Domain is the address family of a socket (AF_INET is 2), -1 when it could not be asked.
	Domain int
}

// The families that a held child may bring along: neither leaves the host by itself.
const (
	afUnix    = 1
	afNetlink = 16
)

// Refused tells whether a box may not bring the descriptor: a socket keeps the cgroup it was made in
// for ever, so one from outside is a way out, a listening one too (connect(AF_UNSPEC), then connect);
// requests on an io_uring ring made outside run outside.
func (h Holding) Refused() bool {
	switch h.Kind {
	case Socket:
		return h.Domain != afUnix && h.Domain != afNetlink
	case IOUring:
		return true
	}
	return false
}

func (h Holding) String() string {
	switch h.Kind {
	case Socket:
		if name, ok := map[int]string{-1: "unknown family", afUnix: "unix", 2: "IPv4", 10: "IPv6", afNetlink: "netlink",
			17: "packet", 38: "alg", 40: "vsock", 44: "xdp"}[h.Domain]; ok {
			return fmt.Sprintf("descriptor %d: socket (%s)", h.FD, name)
		}
		return fmt.Sprintf("descriptor %d: socket (family %d)", h.FD, h.Domain)
	case IOUring:
		return fmt.Sprintf("descriptor %d: io_uring", h.FD)
	}
	return fmt.Sprintf("descriptor %d", h.FD)
}

// Holdings are the sockets and rings of a process.
type Holdings []Holding

// Refused returns those that a box may not bring.
func (hs Holdings) Refused() Holdings {
	var out Holdings
	for _, h := range hs {
		if h.Refused() {
			out = append(out, h)
		}
	}
	return out
}
