package belt

import (
	"errors"
	"fmt"
	"math/bits"
)

// Config is what the programs are made from. Every field is part of their identity: another value
// makes other programs.
type Config struct {
	// Approve is the packet mark bit that rules set on what may leave; the egress program takes it off,
	// so it never reaches another hook or the wire.
	Approve uint32
	// Lease is the bit that says "from a box to a local address": such a packet must leave by lo, also
	// when a NAT rule of somebody else turned its destination around.
	Lease uint32
	// Admit is the bit that the input hook sets on what may reach a box's socket.
	Admit uint32
	// Host is the bit by which the table knows at the receiver that the sender's rules admit a host service. The
	// packet programs do not look at it; a box may set it as little as the others.
	Host uint32
	// NetnsCookie names the network namespace that the programs act in (SO_NETNS_COOKIE).
	NetnsCookie uint64
	// Foreign is the bit of a socket's mark by which MarkForeign knows sockets of other namespaces.
	Foreign uint32
	// MarkForeign is for kernels before 6.15, which tell a program the namespace when a socket is made and
	// not when it sends: two more programs mark the sockets of other namespaces (accepted ones inherit it),
	// and the packet programs let those pass. A box cannot set the bit itself: the setsockopt program
	// refuses it. Fit sets it.
	MarkForeign bool
	// EveryPacket and EveryOption make the packet programs, and the one for socket options, act in every
	// network namespace: for kernels that do not tell a program the namespace. A namespace that a box
	// makes for itself has no loopback then; the box's verdict is the same. Fit sets them.
	EveryPacket, EveryOption bool
}

// Default has the bits of DESIGN.md section 2 and lab/egress.
func Default(cookie uint64) Config {
	return Config{Approve: 0x40000000, Lease: 0x20000000, Admit: 0x08000000, Host: 0x10000000, Foreign: 0x04000000, NetnsCookie: cookie}
}

// bits are all that a box may not set.
func (c Config) bits() uint32 { return c.Approve | c.Lease | c.Admit | c.Host | c.Foreign }

// Check says what is wrong with a config.
func (c Config) Check() error {
	var seen uint32
	for _, b := range []struct {
		name string
		bit  uint32
	}{{"approve", c.Approve}, {"lease", c.Lease}, {"admit", c.Admit}, {"host", c.Host}, {"foreign", c.Foreign}} {
		if bits.OnesCount32(b.bit) != 1 {
			return fmt.Errorf("belt: mark %s %#x: not one bit", b.name, b.bit)
		}
		if seen&b.bit != 0 {
			return fmt.Errorf("belt: mark %s %#x: shares its bit with another", b.name, b.bit)
		}
		seen |= b.bit
	}
	if c.MarkForeign && c.EveryPacket {
		return errors.New("belt: in every namespace, and in the host's only")
	}
	if c.NetnsCookie == 0 && !(c.EveryPacket && c.EveryOption) {
		return errors.New("belt: no network namespace cookie")
	}
	return nil
}
