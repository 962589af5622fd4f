package linux

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer"
)

// RangeStep binds every address of the range. On Linux 127.0.0.0/8 is local (the local routing
// table has it since ever), so there is nothing to make: where a bind fails the host is at fault. But a box's
// address is bound by the box alone (linux/localhost): root too gets EPERM there.
type RangeStep struct {
	// Guarded lists the addresses that are some box's, as the kernel has them; nil or an error where nobody knows.
	Guarded func() ([]netip.Addr, error)
	// Bind is nil for Bindable.
	Bind func(netip.Addr) error
}

var _ installer.Step = RangeStep{}

// ID implements installer.Step.
func (RangeStep) ID() installer.ID { return "range" }

// Describe implements installer.Step.
func (RangeStep) Describe() string {
	return "check that all of 127.0.64.1 to 127.0.64.254 can be bound"
}

// Lifetime implements installer.Step.
func (RangeStep) Lifetime() installer.Lifetime { return installer.Boot }

// Required implements installer.Step.
func (RangeStep) Required() bool { return true }

// Probe binds a UDP socket on each address and closes it again.
func (s RangeStep) Probe(context.Context) (installer.Observation, error) {
	o := installer.Observation{State: installer.Satisfied, Detail: "254 of 254 addresses bound",
		Loses: "no box gets an address or a name"}
	bind := s.Bind
	if bind == nil {
		bind = Bindable
	}
	var guarded []netip.Addr
	failed := bind(netip.AddrFrom4([4]byte{127, 0, 0, 1})) // nobody's: who may not bind here may not bind anywhere
	for n := 1; n <= 254 && failed == nil; n++ {
		a := netip.AddrFrom4([4]byte{127, 0, 64, byte(n)})
		if err := bind(a); errors.Is(err, unix.EPERM) {
			guarded = append(guarded, a)
		} else {
			failed = err
		}
	}
	if failed == nil {
		failed = s.guards(guarded, bind)
	}
	switch {
	case failed != nil:
		o.State, o.Detail, o.Next = installer.Blocked, failed.Error(), "ip route show table local 127.0.0.0/8"
		if errors.Is(failed, unix.EPERM) {
			o.Next = "bpftool cgroup tree; systemctl show -p SocketBindDeny"
		}
	case len(guarded) > 0:
		o.Detail = fmt.Sprintf("%d of 254 addresses bound, %d guarded for the boxes that have them", 254-len(guarded), len(guarded))
	}
	return o, nil
}

// guards checks that addresses that cannot be bound are some box's, or can be by now: a box may have ended. An
// older version's guard that cannot be read is believed.
func (s RangeStep) guards(all []netip.Addr, bind func(netip.Addr) error) error {
	if len(all) == 0 || s.Guarded == nil {
		return nil
	}
	leased, err := s.Guarded()
	if err != nil {
		return nil
	}
	for _, a := range all {
		if slices.Contains(leased, a) {
			continue
		}
		if err := bind(a); err != nil {
			return fmt.Errorf("%w, and it is no box's", err)
		}
	}
	return nil
}

// Bindable tells whether a socket can be bound on an address.
func Bindable(a netip.Addr) error {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: a.AsSlice()})
	if err != nil {
		return fmt.Errorf("bind %s: %w", a, err)
	}
	return c.Close()
}

// Apply is never called: the step is Satisfied or Blocked.
func (RangeStep) Apply(context.Context, *installer.Record) error {
	return fmt.Errorf("range: nothing on Linux can add a loopback address that the kernel does not have")
}

// Undo has nothing to undo.
func (RangeStep) Undo(context.Context, installer.Record) error { return nil }
