package resolved

import (
	"context"
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
