package linux

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer"
)

// TestRangeProbe: EPERM at a box's address is the guard, elsewhere it is the host's fault.
func TestRangeProbe(t *testing.T) {
	seven := netip.MustParseAddr("127.0.64.7")
	only := func(a netip.Addr, err error) func(netip.Addr) error {
		return func(b netip.Addr) error {
			if a == b {
				return fmt.Errorf("bind %s: %w", b, err)
			}
			return nil
		}
	}
	has := func(err error, all ...netip.Addr) func() ([]netip.Addr, error) {
		return func() ([]netip.Addr, error) { return all, err }
	}
	ended := 0
	for name, c := range map[string]struct {
		step   RangeStep
		state  installer.State
		detail string
	}{
		"free":                 {RangeStep{Bind: only(netip.Addr{}, nil)}, installer.Satisfied, "254 of 254 addresses bound"},
		"a box's":              {RangeStep{Bind: only(seven, unix.EPERM), Guarded: has(nil, seven)}, installer.Satisfied, "253 of 254 addresses bound, 1 guarded"},
		"nobody's":             {RangeStep{Bind: only(seven, unix.EPERM), Guarded: has(nil)}, installer.Blocked, "bind 127.0.64.7: operation not permitted, and it is no box's"},
		"an older version's":   {RangeStep{Bind: only(seven, unix.EPERM), Guarded: has(errors.New("another layout"))}, installer.Satisfied, "1 guarded"},
		"not there":            {RangeStep{Bind: only(seven, unix.EADDRNOTAVAIL), Guarded: has(nil, seven)}, installer.Blocked, "cannot assign"},
		"nothing can be bound": {RangeStep{Bind: func(netip.Addr) error { return unix.EPERM }, Guarded: has(errors.New("unknown"))}, installer.Blocked, "operation not permitted"},
		"a box that has ended since": {RangeStep{Guarded: has(nil), Bind: func(a netip.Addr) error {
			if a == seven {
				if ended++; ended == 1 {
					return unix.EPERM
				}
			}
			return nil
		}}, installer.Satisfied, ""},
	} {
		o, err := c.step.Probe(t.Context())
		if err != nil || o.State != c.state || !strings.Contains(o.Detail, c.detail) {
			t.Errorf("%s: %s, %s, %v", name, o.State, o.Detail, err)
		}
	}
}
