//go:build !linux

package datagram

import "net"

// New returns the best batch that the system has. No packet has a mark here.
func New(conn *net.UDPConn, _ bool) (Batch, error) { return Plain(conn), nil }
