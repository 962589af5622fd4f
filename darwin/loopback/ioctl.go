package loopback

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
)

// The structures of <netinet/in_var.h> and <net/if.h> that SIOCAIFADDR and SIOCDIFADDR take, as bytes:
// the same on amd64 and arm64, so they are made and tested on every system.
const (
	nameSize     = 16
	sockaddrSize = 16
	aliasReqSize = nameSize + 3*sockaddrSize // struct in_aliasreq: name, address, broadcast, mask
	ifReqSize    = nameSize + sockaddrSize   // struct ifreq: name, address
	afInet       = 2
)

// aliasReq is a struct in_aliasreq. The broadcast address stays zero: lo0 has none.
func aliasReq(a Alias) (b [aliasReqSize]byte) {
	copy(b[:nameSize-1], Interface)
	putSockaddr(b[nameSize:], a.Addr.As4())
	var mask [4]byte
	binary.BigEndian.PutUint32(mask[:], a.Mask)
	putSockaddr(b[nameSize+2*sockaddrSize:], mask)
	return b
}

// ifReq is a struct ifreq with an address.
func ifReq(a netip.Addr) (b [ifReqSize]byte) {
	copy(b[:nameSize-1], Interface)
	putSockaddr(b[nameSize:], a.As4())
	return b
}

// putSockaddr writes a struct sockaddr_in. Its first byte is its length: in_control reads a mask of
// length 0 as "none given" and takes the one of the class, which is /8 here (xnu, bsd/netinet/in.c).
func putSockaddr(b []byte, addr [4]byte) {
	b[0], b[1] = sockaddrSize, afInet
	copy(b[4:8], addr[:])
}

// Fallback tries the first edge, and asks the second where the first fails.
type Fallback struct{ First, Second Interfaces }

var _ Interfaces = Fallback{}

// List implements Interfaces.
func (f Fallback) List(ctx context.Context) ([]Alias, error) {
	all, err := f.First.List(ctx)
	if err == nil {
		return all, nil
	}
	all, second := f.Second.List(ctx)
	if second != nil {
		return nil, errors.Join(err, second)
	}
	return all, nil
}

// Set implements Interfaces.
func (f Fallback) Set(ctx context.Context, a Alias) error {
	return either(f.First.Set(ctx, a), func() error { return f.Second.Set(ctx, a) })
}

// Remove implements Interfaces.
func (f Fallback) Remove(ctx context.Context, a netip.Addr) error {
	return either(f.First.Remove(ctx, a), func() error { return f.Second.Remove(ctx, a) })
}

func either(first error, second func() error) error {
	if first == nil {
		return nil
	}
	if err := second(); err != nil {
		return errors.Join(first, err)
	}
	return nil
}
