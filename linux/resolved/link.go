package resolved

import (
	"context"
	"errors"
	"net/netip"
)

// group is the interface group of the links we make ("min0" in ASCII): it is given in the same
// message that makes the link, so there is no moment in which a link of ours is not marked.
const group = 0x6d696e30

// Link is a link as the kernel shows it.
type Link struct {
	Index int
	Kind  string
	Ours  bool // carries our group
	Up    bool // up and with carrier: resolved passes over others
	Addrs []netip.Prefix
}

// has says whether the link is as create leaves it.
func (l Link) has(a netip.Prefix) bool {
	for _, x := range l.Addrs {
		if x == a {
			return l.Up
		}
	}
	return false
}

// Links makes, finds and removes the one link. A link of another owner is never changed.
type Links interface {
	// Find returns ok false when there is no link of that name.
	Find(ctx context.Context, name string) (l Link, ok bool, err error)
	// Create makes the link, up and with the address; kinds are tried in order. On error nothing
	// is left of it.
	Create(ctx context.Context, name string, addr netip.Prefix) (Link, error)
	// Delete removes it; nil when it is gone.
	Delete(ctx context.Context, name string) error
}

// Bus is systemd-resolved as the step sees it.
type Bus interface {
	// Running says whether resolved has its name on the bus. No bus at all: false, nil.
	Running(context.Context) (bool, error)
	// Servers lists what is configured anywhere, and what FallbackDNS= holds.
	Servers(context.Context) (servers, fallback []Server, err error)
	// Link reads the state of a link. ErrNoLink while resolved has not heard of it.
	Link(ctx context.Context, index int) (State, error)
	// Set configures a link, the switch last. ErrNoLink and ErrManaged as they come.
	Set(ctx context.Context, index int, want State) error
	// Revert takes everything back that was set on a link. Lookups that wait for an answer of its servers fail
	// at once.
	Revert(ctx context.Context, index int) error
	// Delegate reads a delegate by its name. ErrNoDelegate and ErrNoDelegates as they come.
	Delegate(ctx context.Context, name string) (Delegate, error)
	// Resolve looks an IPv4 address up as a program would.
	Resolve(ctx context.Context, name string) ([]netip.Addr, error)
}

var (
	// ErrNoLink: resolved does not know the link, or not yet.
	ErrNoLink = errors.New("systemd-resolved does not know the link")
	// ErrManaged: networkd manages the link, and resolved takes its settings from there only.
	ErrManaged = errors.New("systemd-networkd manages the link")
)
