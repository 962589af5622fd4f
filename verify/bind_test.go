package verify

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"
)

// TestRangeGuarded: an address that only its box may bind is no fault of the host; one that is not there is.
func TestRangeGuarded(t *testing.T) {
	with := func(why error) Row {
		return Range(context.Background(), func(_ context.Context, a netip.Addr) error {
			if a == netip.MustParseAddr("127.0.64.7") {
				return fmt.Errorf("listen udp4 %s:0: bind: %w", a, why)
			}
			return nil
		})
	}
	if row := with(syscall.EPERM); row.State != OK || !strings.Contains(row.Detail, "1 of them by their boxes only") {
		t.Errorf("%+v", row)
	}
	if row := with(syscall.EADDRNOTAVAIL); row.State != Failed {
		t.Errorf("%+v", row)
	}
}

// TestRangeForbidden: who may bind nothing learns nothing about boxes.
func TestRangeForbidden(t *testing.T) {
	row := Range(context.Background(), func(context.Context, netip.Addr) error { return syscall.EPERM })
	if row.State != Failed || !strings.Contains(row.Detail, "operation not permitted") {
		t.Errorf("%+v", row)
	}
}
