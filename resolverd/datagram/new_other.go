//go:build !linux

package datagram

import "net"

// New returns the best batch that the system has.
func New(conn *net.UDPConn) (Batch, error) { return Plain(conn), nil }
