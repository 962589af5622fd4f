package cut

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux/nft"
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

	mu          sync.Mutex
	diag, track *conn
}

// New opens the lasting connections. The zero Marks are the default ones.
func New(marks nft.Marks, log *slog.Logger) (*Cutter, error) {
	c := &Cutter{marks: marks.OrDefault(), log: log, diag: &conn{family: unix.NETLINK_SOCK_DIAG}, track: &conn{family: unix.NETLINK_NETFILTER}}
	if err := errors.Join(c.diag.open(), c.track.open()); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Close gives the connections back.
func (c *Cutter) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.diag.close(), c.track.close())
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
	sockets, err := c.sockets(ctx)
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
		if errors.Is(err, errNoDestroy) {
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

// conn is one lasting netlink connection; closing one costs 10 to 20 ms. After an error it is opened
// again, so that a late answer never meets the next request.
type conn struct {
	family int
	nl     *netlink.Conn
}

// patience ends a call whose context has no end.
const patience = 10 * time.Second

func (c *conn) open() error {
	nl, err := netlink.Dial(c.family, nil)
	if err != nil {
		return fmt.Errorf("open netlink family %d: %w", c.family, err)
	}
	if err := nl.SetReadBuffer(4 << 20); err != nil {
		return errors.Join(fmt.Errorf("netlink buffer: %w", err), nl.Close())
	}
	c.nl = nl
	return nil
}

func (c *conn) close() error {
	if c.nl == nil {
		return nil
	}
	err := c.nl.Close()
	c.nl = nil
	return err
}

// request sends one message and returns the answers. What the kernel calls an interrupted dump is
// taken: flows that it missed are found by the next look.
func (c *conn) request(ctx context.Context, m netlink.Message) ([]netlink.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.nl == nil {
		if err := c.open(); err != nil {
			return nil, err
		}
	}
	end, ok := ctx.Deadline()
	if !ok {
		end = time.Now().Add(patience)
	}
	if err := c.nl.SetDeadline(end); err != nil {
		return nil, err
	}
	answers, err := c.nl.Execute(m)
	if err == nil {
		return answers, nil
	}
	var op *netlink.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	// These are the kernel's whole answer; behind others the connection may be out of step.
	if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EOPNOTSUPP) {
		c.close()
	}
	return nil, err
}
