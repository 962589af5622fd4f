package helper

import (
	"errors"
	"net"
)

// Peer is the process that opened a connection, as the kernel knew it at that moment.
type Peer struct {
	UID    uint32
	PID    int
	Groups []uint32 // supplementary groups at connect; nil where the kernel does not tell
	alive  func() error
	close  func() error
}

// NewPeer is for tests and for other sources of identity. alive returns an error once the process has ended;
// release is called when the connection is closed.
func NewPeer(uid uint32, pid int, groups []uint32, alive, release func() error) Peer {
	return Peer{UID: uid, PID: pid, Groups: groups, alive: alive, close: release}
}

// Alive returns nil while the process lives. In doubt it is an error.
func (p Peer) Alive() error {
	if p.alive == nil {
		return errors.New("the peer's process is not known")
	}
	return p.alive()
}

func (p Peer) release() {
	if p.close != nil {
		p.close()
	}
}

// Peers asks the kernel who opened a connection.
type Peers interface {
	Identify(*net.UnixConn) (Peer, error)
}
