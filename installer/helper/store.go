package helper

import (
	"net/netip"
	"time"

	"github.com/gominimal/minhost/installer/lease"
)

// Store keeps attached leases across a crash of the helper, one file a lease, on a tmpfs: no
// lease outlives a boot. Planned leases are not stored: they end with their connection.
type Store interface {
	Put(lease.Lease) error
	// Remove has no error for what is not there.
	Remove(id string) error
	// All returns every lease that can be read, and one error line for each file that can't.
	All() ([]lease.Lease, []error)
	// Rest keeps when addresses were given back: a helper that starts again must not hand out what a
	// browser still has in its cache.
	Rest(map[netip.Addr]time.Time) error
	Rested() (map[netip.Addr]time.Time, error)
}
