package helper

import (
	"context"
	"net/netip"
	"os"

	"github.com/gominimal/minhost/installer/lease"
)

// Isolation tells network namespaces of processes apart (linux/netns).
type Isolation interface {
	// Of opens the network namespace of a process. fs.ErrNotExist when it has ended, an *Unfit when its
	// threads are in different ones. A pid may be another process's by the time of the answer.
	Of(pid int) (Namespace, error)
	// Host is the id of the helper's own namespace, which is the host's.
	Host() (uint64, error)
}

// Namespace is a network namespace, held open: its id keeps meaning the same one.
type Namespace interface {
	ID() uint64
	// File stays the Namespace's.
	File() *os.File
	// Users lists the processes of which a thread is in it.
	Users() ([]int, error)
	// Prepare requires that it has no device but loopback, brings that up, and makes the tap, if there is one: its
	// descriptor is the caller's. An *Unfit when there are other devices.
	Prepare(ctx context.Context, tap *lease.Tap) (*os.File, error)
	// RemoveTaps removes every tap in it, whoever holds descriptors of them.
	RemoveTaps(ctx context.Context) error
	Close() error
}

// Sockets makes sockets inside leaves (linux/listen).
type Sockets interface {
	// Listen makes a listening (tcp) or bound (udp) socket on an address, as a user, by a process that is born
	// in the leaf. Port 0 takes a free one; the address it returns is the socket's. unix.EADDRINUSE,
	// EADDRNOTAVAIL and EACCES say why it cannot be.
	Listen(ctx context.Context, leaf Leaf, uid uint32, p lease.Protocol, at netip.AddrPort) (*os.File, netip.AddrPort, error)
}
