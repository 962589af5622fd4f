package nft

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/gominimal/minhost/installer/lease"
	"golang.org/x/sys/unix"
)

// Table is the table with the state that this process wrote. Its methods may be called concurrently.
type Table struct {
	config Config
	log    *slog.Logger
	watch  *watch

	// The kernel walks its whole conntrack table for a deletion (8 ms with 262,144 buckets), on a
	// connection of its own: changes of other boxes do not wait for it.
	trackMu sync.Mutex
	track   *conn

	mu    sync.Mutex
	conn  *conn
	state state
	// synced says that the kernel holds state as far as we know: nothing failed since the last
	// successful batch. Until then every change is a refill.
	synced bool

	before map[uint64]lease.Traffic // of elements that are gone, by leaf
	gone   lease.Traffic            // of boxes that have ended
}

// New opens the lasting connections, in the network namespace of the calling thread, and the watch
// behind Changed. It reads and writes no rule. Close ends both.
func New(c Config, log *slog.Logger) (*Table, error) { return open(c, nil, log) }

func open(c Config, owner *os.File, log *slog.Logger) (*Table, error) {
	c, err := c.normal()
	if err != nil {
		return nil, fmt.Errorf("table inet %s: %w", tableName, err)
	}
	t := &Table{config: c, log: log, state: newState(c.Marks), before: map[uint64]lease.Traffic{}}
	if t.conn, err = dial(owner); err != nil {
		return nil, err
	}
	if t.track, err = dial(nil); err != nil {
		return nil, errors.Join(err, t.conn.close())
	}
	if t.watch, err = newWatch(t.conn.ours); err != nil {
		return nil, errors.Join(err, t.conn.close(), t.track.close())
	}
	return t, nil
}

// Close gives the connection back; the table stays in the kernel.
func (t *Table) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trackMu.Lock()
	defer t.trackMu.Unlock()
	return errors.Join(t.watch.close(), t.conn.close(), t.track.close())
}

// Changed receives a value when somebody else changed or removed our table, some milliseconds after
// the last such change. It is never closed.
func (t *Table) Changed() <-chan struct{} { return t.watch.changed }

// Put makes the table hold this verdict for v.Leaf, replacing an older one, in one batch that adds
// and deletes only what differs. When the kernel does not hold what we wrote before, the whole table
// is refilled instead.
func (t *Table) Put(ctx context.Context, v lease.Verdict) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.move(ctx, t.state.with(v), v.Leaf)
}

// Refuse takes a leaf out of the table. No error when the table does not have it.
func (t *Table) Refuse(ctx context.Context, v lease.Verdict) error {
	_, err := t.take(ctx, v)
	return err
}

// Delete takes a leaf out of the table, then removes the conntrack entries of all its flows. No error
// when the table does not have it.
func (t *Table) Delete(ctx context.Context, v lease.Verdict) error {
	number, err := t.take(ctx, v)
	if err != nil {
		return err
	}
	t.trackMu.Lock()
	defer t.trackMu.Unlock()
	return t.track.deleteConntrack(ctx, t.config.Marks, number)
}

// take removes a leaf and returns the lease number that its flows carry.
func (t *Table) take(ctx context.Context, v lease.Verdict) (uint16, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	number := v.Number
	e, known := t.state.leaves[v.Leaf]
	if known {
		number = e.verdict.Number
	}
	// A Put that was broken off may be in the kernel though it is not in the state.
	if known || !t.synced {
		if err := t.move(ctx, t.state.without(v.Leaf), v.Leaf); err != nil {
			return 0, err
		}
	}
	t.forgetCounts(v.Leaf)
	return number, t.forgetLeaf(ctx, v.Leaf)
}

// move goes to a state that differs in one leaf.
func (t *Table) move(ctx context.Context, next state, leaf uint64) error {
	if !t.synced {
		return t.refill(ctx, next.verdicts())
	}
	del, add := change(t.state, next, leaf)
	t.keepCounts(ctx, del)
	first, add := deniedFirst(add)
	err := t.conn.send(ctx, changes(nil, first))
	if err == nil {
		err = t.conn.send(ctx, changes(del, add))
	}
	if ctx.Err() != nil {
		t.synced = false
		return fmt.Errorf("change leaf %d: %w", leaf, errors.Join(err, ctx.Err()))
	}
	if err == nil && t.holds(ctx, next, leaf) {
		t.state = next
		return nil
	}
	t.log.Warn("table is not as it was left, refilling", "leaf", leaf, "error", err)
	return t.refill(ctx, next.verdicts())
}

// holds reads back whether the kernel has the leaf under the policy of this state, or not at all when
// the state does not have it. The batch is atomic: one element tells.
func (t *Table) holds(ctx context.Context, s state, leaf uint64) bool {
	e, present, err := t.conn.find(ctx, setPolicy, fCgroup(leaf))
	if err != nil {
		return false
	}
	entry, wanted := s.leaves[leaf]
	if !wanted {
		return !present
	}
	return present && e.Data == policyValue(entry.verdict, s.ids[entry.key])
}

// Refill makes table, chains and sets hold exactly these verdicts, whatever was there under our
// name, and reads all of it back. Rules and elements change in one batch; live allowed flows go on.
// A table that is as it should be is not written.
func (t *Table) Refill(ctx context.Context, all []lease.Verdict) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refill(ctx, all)
}

// refill tries again when somebody else changed the table between our listing and our batch.
func (t *Table) refill(ctx context.Context, all []lease.Verdict) error {
	var err error
	for range 5 {
		if err = t.refillOnce(ctx, all); err == nil || ctx.Err() != nil || !raced(err) {
			break
		}
	}
	return err
}

// raced says whether an error is what a change by somebody else looks like.
func raced(err error) bool {
	for _, e := range []error{errNotWritten, unix.ENOENT, unix.EEXIST, unix.EBUSY} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (t *Table) refillOnce(ctx context.Context, all []lease.Verdict) error {
	t.synced = false
	have, err := t.conn.list(ctx, true)
	if err != nil {
		return fmt.Errorf("refill: %w", err)
	}
	if !have.present {
		// Closed first, filled second: a large batch takes most of a second.
		if have, err = t.write(ctx, ruleset(t.config, nil), have); err != nil {
			return err
		}
	}
	next := newState(t.config.Marks)
	next.adopt(all, have.policies())
	want := ruleset(t.config, next.elements())
	if len(differences(want, have, true)) > 0 {
		if have, err = t.deny(ctx, want, have); err != nil {
			return err
		}
		if _, err := t.write(ctx, want, have); err != nil {
			return err
		}
	}
	t.state, t.synced = next, true
	return t.dropStale(ctx)
}

// deny adds the denied subnets that are missing, before anything else of a refill.
func (t *Table) deny(ctx context.Context, want Ruleset, have listed) (listed, error) {
	var missing []setElement
	for _, s := range want.Sets {
		if have.sets[s.Name] != s.definition() {
			continue
		}
		for _, e := range minus(s.Elements, have.elements[s.Name]) {
			missing = append(missing, setElement{s.Name, e})
		}
	}
	denied, _ := deniedFirst(missing)
	if len(denied) == 0 || t.conn.send(ctx, changes(nil, denied)) != nil {
		return have, nil // those of an older policy may be in the way: then all go in one batch
	}
	return t.conn.list(ctx, true)
}

// write sends one batch, decides from the kernel whether it is in, and returns what is there now.
func (t *Table) write(ctx context.Context, want Ruleset, have listed) (listed, error) {
	sent := t.conn.send(ctx, plan(want, have))
	if sent != nil && !errors.Is(sent, unix.ENOBUFS) {
		return have, fmt.Errorf("refill table inet %s: %w", tableName, sent)
	}
	now, err := t.conn.list(ctx, true)
	if err != nil {
		return have, fmt.Errorf("read table inet %s back: %w", tableName, err)
	}
	if diff := differences(want, now, true); len(diff) > 0 {
		return now, fmt.Errorf("table inet %s is not as written: %s (and %d more): %w",
			tableName, diff[0], len(diff)-1, errors.Join(sent, errNotWritten))
	}
	return now, nil
}

var errNotWritten = errors.New("somebody else changed it, or the kernel lacks a feature")
