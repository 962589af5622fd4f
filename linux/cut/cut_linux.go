package cut

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux/lasting"
	"github.com/gominimal/minhost/linux/nft"
	"github.com/gominimal/minhost/linux/sockdiag"
)

// maxLookups is up to how many sockets of a box are looked up one by one in connection tracking: each
// costs 10 us, a listing of the whole table some 8 ms with 262,144 buckets.
const maxLookups = 500

// Cutter ends flows in the network namespace of the thread that made it. Its methods may be called
// concurrently; they take turns.
type Cutter struct {
	// MarkOnly: destroy no socket, only mark flows as ended. Set where the kernel cannot destroy.
	MarkOnly bool

	marks nft.Marks
	log   *slog.Logger

	mu    sync.Mutex
	diag  *sockdiag.Conn
	track lasting.Conn
}

// New opens the lasting connections. The zero Marks are the default ones.
func New(marks nft.Marks, log *slog.Logger) (*Cutter, error) {
	diag, err := sockdiag.Open()
	c := &Cutter{marks: marks.OrDefault(), log: log, diag: diag, track: lasting.Conn{Family: unix.NETLINK_NETFILTER}}
	if err := errors.Join(err, c.track.Open()); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Close gives the connections back.
func (c *Cutter) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.diag.Close(), c.track.Close())
}

// Cut ends every live flow of a box that its verdict does not admit, and says how many sockets and
// tracked flows that were. On a kernel that cannot destroy sockets it only marks the flows: the next
// packet of either end is answered with a reset, and the log says so once.
func (c *Cutter) Cut(ctx context.Context, v lease.Verdict, groups []uint64, place lease.Place, owner func(cgroup uint64) uint16) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	box := Box{Verdict: v, Groups: map[uint64]bool{}, Place: place, Owner: owner}
	for _, g := range groups {
		box.Groups[g] = true
	}
	// The sockets of the leaf first, so that both ends are told at once; then whatever else the lease has
	// in connection tracking, and connections that were being accepted at the first look.
	n, err := c.pass(ctx, box, c.lookups)
	more, again := c.pass(ctx, box, c.tracked)
	if err = errors.Join(err, again); err != nil {
		err = fmt.Errorf("cut flows of lease %d: %w", v.Number, err)
	}
	return n + more, err
}

// pass looks and ends. Sockets go first: behind the mark their resets would be refused.
func (c *Cutter) pass(ctx context.Context, box Box, entries func(context.Context, Box, []Socket) ([]Tracked, error)) (int, error) {
	sockets, err := c.sockets(ctx, liveTCP)
	if err != nil {
		return 0, err
	}
	tracked, err := entries(ctx, box, sockets)
	if err != nil {
		return 0, err
	}
	e := judge(box, c.marks, sockets, tracked)
	var errs []error
	done := 0
	for _, s := range e.sockets {
		err := c.destroy(ctx, s)
		if errors.Is(err, sockdiag.ErrNotEnded) {
			if !c.MarkOnly {
				c.log.Warn("live flows end at their next packet only", "cause", err)
			}
			c.MarkOnly = true
			break
		}
		if err == nil {
			done++
		}
		errs = append(errs, err)
	}
	for _, t := range e.mark {
		errs = append(errs, c.markEnded(ctx, t))
	}
	for _, t := range e.renew {
		errs = append(errs, c.renew(ctx, t))
	}
	for _, t := range e.forget {
		errs = append(errs, c.forget(ctx, t))
	}
	return done + len(e.mark) + len(e.forget), errors.Join(errs...)
}

// liveTCP are the states of a connection that can be ended.
const liveTCP = sockdiag.Every &^ (sockdiag.TimeWait | sockdiag.Closed | sockdiag.Listen | sockdiag.Bound)

// sockets lists the TCP sockets in these states and all UDP sockets. Of what the kernel cannot tell there is none:
// connection tracking has its flows.
func (c *Cutter) sockets(ctx context.Context, tcp sockdiag.States) ([]Socket, error) {
	all, err := c.diag.List(ctx, tcp, sockdiag.Every)
	if errors.Is(err, sockdiag.ErrNotTold) {
		err = nil
	}
	return all, err
}

// destroy ends a socket, or says that it cannot.
func (c *Cutter) destroy(ctx context.Context, s Socket) error {
	if c.MarkOnly {
		return sockdiag.ErrNotEnded
	}
	return c.diag.Destroy(ctx, s)
}

// Connected tells whether a connected socket lives that was made in one of these cgroups.
func (c *Cutter) Connected(ctx context.Context, groups []uint64) (bool, error) {
	all, err := c.sockets(ctx, liveTCP)
	return slices.ContainsFunc(all, func(s Socket) bool { return s.Remote.IsValid() && slices.Contains(groups, s.Cgroup) }), err
}
