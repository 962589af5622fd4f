package linux

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer"
)

// RangeStep binds every address of the range. On Linux 127.0.0.0/8 is local (the local routing
// table has it since ever), so there is nothing to make: where a bind fails the host is at fault.
type RangeStep struct{}

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
func (RangeStep) Probe(context.Context) (installer.Observation, error) {
	o := installer.Observation{State: installer.Satisfied, Detail: "254 of 254 addresses bound",
		Loses: "no box gets an address or a name"}
	guarded := 0
	for n := 1; n <= 254; n++ {
		a := netip.AddrFrom4([4]byte{127, 0, 64, byte(n)})
		err := Bindable(a)
		if errors.Is(err, unix.EPERM) {
			guarded++ // by linux/localhost, for the box that has it: nothing else forbids root a port above 1023
			continue
		}
		if err != nil {
			o.State, o.Detail, o.Next = installer.Blocked, err.Error(), "ip route show table local 127.0.0.0/8"
			return o, nil
		}
	}
	if guarded > 0 {
		o.Detail = fmt.Sprintf("%d of 254 addresses bound, %d guarded for the boxes that have them", 254-guarded, guarded)
	}
	return o, nil
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
