//go:build !linux || fakedarwin

package datagram

import "net"

// New returns the best batch that the system has. No packet has a mark here. A model of a Mac (verify/fakedarwin)
// has what a Mac has.
func New(conn *net.UDPConn, _ bool) (Batch, error) { return Plain(conn), nil }
