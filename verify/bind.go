package verify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// The range (DESIGN.md section 2): 127.0.64.1 to 127.0.64.254.
const (
	firstHost = 1
	lastHost  = 254
)

// hostsOwn is the address that no box ever has.
var hostsOwn = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Binder binds an address for a moment, and fails when it cannot.
type Binder func(ctx context.Context, addr netip.Addr) error

// Bind binds a UDP socket of any free port to the address and closes it. UDP, because a TCP
// listener of a moment could be dialled by a scanner and would refuse nothing.
func Bind(ctx context.Context, addr netip.Addr) error {
	var lc net.ListenConfig
	c, err := lc.ListenPacket(ctx, "udp4", netip.AddrPortFrom(addr, 0).String())
	if err != nil {
		return err
	}
	return c.Close()
}

// Range binds every address of the range. On Linux 127/8 is local and this works on any sound host;
// on macOS an address without its alias fails, and a connection to it would hang, not be refused.
func Range(ctx context.Context, bind Binder) Row {
	row := Row{Name: "range", Loses: "boxes get no address of their own", Next: "minhost finalize-install"}
	if err := bind(ctx, hostsOwn); err != nil { // then a refusal below says nothing about boxes
		row.State, row.Detail = Failed, fmt.Sprintf("not even the host's own localhost can be bound: %v", err)
		return row
	}
	var first error
	failed, guarded := 0, 0
	for host := firstHost; host <= lastHost; host++ {
		err := bind(ctx, netip.AddrFrom4([4]byte{127, 0, 64, byte(host)}))
		switch {
		case errors.Is(err, syscall.EPERM):
			guarded++ // on Linux, by the box that has it: a high port needs no right
		case err != nil:
			failed++
			if first == nil {
				first = err
			}
		}
	}
	if failed > 0 {
		row.State = Failed
		row.Detail = fmt.Sprintf("%d of %d addresses cannot be bound, the first: %v", failed, lastHost-firstHost+1, first)
		return row
	}
	if guarded > 0 {
		return Row{Name: row.Name, State: OK, Detail: fmt.Sprintf("127.0.64.1 to 127.0.64.254: all can be bound, %d of them by their boxes only", guarded)}
	}
	return Row{Name: row.Name, State: OK, Detail: "127.0.64.1 to 127.0.64.254: all can be bound"}
}
