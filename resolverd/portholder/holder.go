// Package portholder finds out which process has a port, for the error that says that it is taken.
//
// It reads what the kernel tells in /proc and changes nothing. It sees the sockets of its own
// network namespace, and the processes that its user may look into: root sees all.
package portholder

import (
	"fmt"
	"net/netip"
)

// Holder is who has a socket.
type Holder struct {
	UID     uint32 // owner of the socket
	PID     int    // of a process that has it open, 0 when none could be looked into
	Program string // of that process, printable
}

// Remedy is what to type, for the end of an error: who holds the port, and how to see or end it.
func Remedy(network string, addr netip.AddrPort) string {
	h, found := Find(network, addr)
	switch {
	case found && h.PID != 0:
		return fmt.Sprintf("held by %s, process %d; end it (kill %d), or see what it is: %s", h.Program, h.PID, h.PID, command(network, addr.Port()))
	case found:
		return fmt.Sprintf("held by a process of user %d; to see which, as root: %s", h.UID, command(network, addr.Port()))
	}
	return "to see who holds it: " + command(network, addr.Port())
}
