package linux

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/linux/sockdiag"
)

// AddressFree tells whether a leased address can be given: it can be bound, and no socket of an
// earlier box, or of anybody, is bound to it (sock_diag(7)).
func AddressFree(a netip.Addr) error {
	if err := Bindable(a); err != nil {
		return err
	}
	return AddressUnused(a)
}

// listTime bounds a listing of sockets.
const listTime = 10 * time.Second

// AddressUnused tells whether no socket is bound to an address; of those in TIME_WAIT, which deliver nothing, it does
// not ask. TCP sockets that are bound and do not listen are seen from kernel 6.8 on.
func AddressUnused(a netip.Addr) error {
	ctx, cancel := context.WithTimeout(context.Background(), listTime)
	defer cancel()
	c, err := sockdiag.Open()
	if err != nil {
		return err
	}
	defer c.Close()
	const states = sockdiag.Every &^ sockdiag.TimeWait
	all, err := c.List(ctx, states, states)
	for _, s := range all {
		if s.Local.Addr() == a {
			return inUse(s)
		}
	}
	return err
}

func inUse(s sockdiag.Socket) error {
	kind := "TCP"
	if s.Protocol == unix.IPPROTO_UDP {
		kind = "UDP"
	}
	return fmt.Errorf("a %s socket is bound to %s; look: ss -anp src %s", kind, s.Local, s.Local.Addr())
}
