package loopback

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
)

// Count is how many aliases the range has: 127.0.64.1 to 127.0.64.254.
const Count = 254

// HostMask is the mask of one address: /32.
const HostMask uint32 = 0xffffffff

// Interface is where the aliases are. macOS calls it lo0.
const Interface = "lo0"

// Alias is one IPv4 address of lo0.
type Alias struct {
	Addr netip.Addr
	Mask uint32
}

func (a Alias) String() string { return fmt.Sprintf("%s mask 0x%08x", a.Addr, a.Mask) }

// Interfaces is the edge to lo0.
type Interfaces interface {
	// List returns every IPv4 address of lo0.
	List(context.Context) ([]Alias, error)
	// Set adds an alias, or gives the one that is there this mask, in place.
	Set(context.Context, Alias) error
	// Remove takes an alias away; one that is not there is an error.
	Remove(context.Context, netip.Addr) error
}

// Wanted is the range, in order.
func Wanted() []netip.Addr {
	all := make([]netip.Addr, 0, Count)
	for n := 1; n <= Count; n++ {
		all = append(all, netip.AddrFrom4([4]byte{127, 0, 64, byte(n)}))
	}
	return all
}

// InRange says whether an address is one of Wanted.
func InRange(a netip.Addr) bool {
	b := a.As4()
	return a.Is4() && b[0] == 127 && b[1] == 0 && b[2] == 64 && b[3] >= 1 && b[3] <= Count
}

// Difference is what Set has to be called for.
type Difference struct {
	Missing []netip.Addr
	Wrong   []Alias // there, with a mask that is not HostMask
}

// Empty says that lo0 is as wanted.
func (d Difference) Empty() bool { return len(d.Missing) == 0 && len(d.Wrong) == 0 }

func (d Difference) String() string {
	switch {
	case d.Empty():
		return "254 of 254 aliases, each /32"
	case len(d.Wrong) == 0:
		return fmt.Sprintf("%d of %d aliases are missing, the first is %s", len(d.Missing), Count, d.Missing[0])
	case len(d.Missing) == 0:
		return fmt.Sprintf("%d aliases have a wrong mask, the first is %s", len(d.Wrong), d.Wrong[0])
	}
	return fmt.Sprintf("%d of %d aliases are missing, the first is %s; %d have a wrong mask, the first is %s",
		len(d.Missing), Count, d.Missing[0], len(d.Wrong), d.Wrong[0])
}

// Compare says what lo0 lacks. Addresses outside the range are nobody's business here; they are told
// from ours by their value, never by how their text begins (127.0.64.1 and 127.0.641.1 do not exist both,
// but 127.0.64.0 and 127.0.64.255 may).
func Compare(have []Alias) Difference {
	masks := map[netip.Addr][]uint32{}
	for _, a := range have {
		masks[a.Addr] = append(masks[a.Addr], a.Mask)
	}
	var d Difference
	for _, w := range Wanted() {
		m, ok := masks[w]
		switch {
		case !ok:
			d.Missing = append(d.Missing, w)
		case m[0] != HostMask:
			d.Wrong = append(d.Wrong, Alias{w, m[0]})
		}
	}
	return d
}

// maskOf reads what package net found: the last four octets, or none where the kernel told no mask.
func maskOf(m net.IPMask) uint32 {
	if len(m) < 4 {
		return 0
	}
	return binary.BigEndian.Uint32(m[len(m)-4:])
}

// Unbound binds every address of the range for a moment and returns those that cannot be bound, with
// the first cause. UDP: nobody can dial it meanwhile. All 254 take some 2.5 ms.
func Unbound(bind func(netip.Addr) error) ([]netip.Addr, error) {
	var bad []netip.Addr
	var first error
	for _, a := range Wanted() {
		if err := bind(a); err != nil {
			bad = append(bad, a)
			if first == nil {
				first = err
			}
		}
	}
	return bad, first
}

// Bind binds a UDP socket of any free port to the address and closes it.
func Bind(a netip.Addr) error {
	c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 0)))
	if err != nil {
		return fmt.Errorf("bind %s: %w", a, err)
	}
	return c.Close()
}
