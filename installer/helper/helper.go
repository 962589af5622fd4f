package helper

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// Limits of DESIGN.md section 8.
const (
	maxAddresses   = 128   // of one uid
	maxLeaves      = 4096  // of one uid
	maxElements    = 5000  // of one uid
	maxAllElements = 20000 // of all
	maxChildren    = 8     // of one uid, that make something in another place, at once
	rememberGone   = 60 * time.Second
)

// Config is all that a Helper needs. Every field must be set that does not say what its zero is, but for Table, Flows and Refusals on a
// host that can't enforce (then Unenforceable says why).
type Config struct {
	Version         string
	BootID          string
	ServiceManager  string
	Unenforceable   string
	SharedLocalhost string
	OneProcess      bool // a box is its one attached process (macOS): no leaf, no table, by no fault of the host

	Tree      Tree
	Table     Table
	Flows     Flows
	Refusals  Refusals
	Listeners Listeners // nil where the host cannot tell
	Runners   Runners   // nil where they cannot be counted
	Names     Names
	Range     Range
	Localhost Localhost // nil where boxes share the host's localhost: SharedLocalhost says why
	Processes Processes
	// Isolation and Sockets are nil where the host has neither network namespaces nor leaves.
	Isolation Isolation
	Sockets   Sockets
	Peers     Peers
	Checker   Checker
	Store     Store
	Audience  Audience // nil where no answerer tells the helper anything
	Operators func(Peer) (bool, error)
	// Local says whether an address is the host's own, for Explain.
	Local func(netip.Addr) bool

	// Grace is how long an attached box may be without a process before it is torn down.
	Grace time.Duration
	// AdoptWithin is how long a box with end_with_connection outlives a restart of the helper.
	AdoptWithin time.Duration
	// LookAfter is the pause between looks for processes that left their leaf.
	LookAfter time.Duration
	// LookupsFor is how long one Watch hears of lookups.
	LookupsFor time.Duration
	// RetryAfter is the pause before what failed on the way out is tried again.
	RetryAfter time.Duration
	// MessageTime is how long a message may take from its first octet to its last, and a peer to take a reply;
	// 0 is 10 s.
	MessageTime time.Duration
	// IdleAfter is how long a connection may be silent that owns no lease and waits for no answer; 0 is 10 min.
	IdleAfter time.Duration
	Now       func() time.Time
	Log       *slog.Logger
}

// Helper keeps the leases. Make it with New, then Replay, then Serve.
type Helper struct {
	cfg     Config
	log     *slog.Logger
	started time.Time
	events  hub
	// accounts has a lock of its own, taken before mu.
	accounts *accounts
	// publishing keeps zones in the order of the leases they were made from.
	publishing sync.Mutex
	// repairing keeps one comparison of the table at a time.
	repairing sync.Mutex
	// refilling is held for reading around every change of one verdict, and for writing from the look
	// at the leases to the end of a refill: what was looked at is what the table then holds.
	refilling sync.RWMutex
	verifying sync.Mutex
	expiry    expiry
	resting   sync.Mutex
	// looking guards heard: what waited in each box at the last look.
	looking  sync.Mutex
	heard    map[string][]api.Listener
	audience audience
	// expecting says that a move is waited for.
	expecting atomic.Bool
	// life ends with Close: watchers, retries and reapers hang on it.
	life context.Context
	stop context.CancelFunc
	work sync.WaitGroup

	mu       sync.Mutex
	boxes    map[string]*box
	names    map[string]*box
	numbers  map[uint16]*box
	released map[netip.Addr]time.Time
	gone     map[string]ended
	lastNum  uint16
	counts   counts
	// children are the places of each uid for processes that make sockets and taps.
	children map[uint32]chan struct{}
	answers  []api.Counter // of the answerer, as it last told them
}

// counts of DESIGN.md section 8: at rest, plans = attaches + abandons and attaches = teardowns.
type counts struct{ plans, attaches, abandons, teardowns int }

// New returns a helper without leases.
func New(cfg Config) *Helper {
	cfg.MessageTime, cfg.IdleAfter = cmp.Or(cfg.MessageTime, 10*time.Second), cmp.Or(cfg.IdleAfter, 10*time.Minute)
	ctx, cancel := context.WithCancel(context.Background())
	return &Helper{
		cfg: cfg, log: cfg.Log, started: cfg.Now(), life: ctx, stop: cancel, accounts: newAccounts(), children: map[uint32]chan struct{}{}, expiry: newExpiry(),
		boxes: map[string]*box{}, names: map[string]*box{}, numbers: map[uint16]*box{},
		released: map[netip.Addr]time.Time{}, gone: map[string]ended{},
	}
}

// Close stops watchers and retries and waits for them. Boxes go on: their verdicts are the
// kernel's.
func (h *Helper) Close() {
	h.stop()
	h.work.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, b := range h.boxes {
		if b.leaf != nil {
			b.leaf.Close()
		}
		if b.netns != nil {
			b.netns.Close()
		}
	}
}

// spawn runs f until it returns; Close waits for it.
func (h *Helper) spawn(f func(ctx context.Context)) {
	h.work.Add(1)
	go func() {
		defer h.work.Done()
		f(h.life)
	}()
}

// find returns a box, or what the table of states says of one that is gone. h.mu is held.
func (h *Helper) find(id string) (*box, *ended) {
	if b := h.boxes[id]; b != nil {
		return b, nil
	}
	if e, ok := h.gone[id]; ok && h.cfg.Now().Sub(e.at) < rememberGone {
		return nil, &e
	}
	return nil, nil
}

// forget frees everything that is counted in memory and remembers how it ended. h.mu is held.
func (h *Helper) forget(b *box, op lease.Op) {
	delete(h.boxes, b.ID)
	delete(h.numbers, b.Number)
	if b.Name != "" {
		delete(h.names, b.Name)
	}
	now := h.cfg.Now()
	if lease.InRange(b.Address) { // those of 127.65.0.0/16 go by lease numbers
		h.released[b.Address] = now
	}
	for id, e := range h.gone {
		if now.Sub(e.at) >= rememberGone {
			delete(h.gone, id)
		}
	}
	b.State = lease.Gone
	kept := b.Lease
	kept.Policy = lease.Policy{} // a thousand rules, which nobody asks for any more
	h.gone[b.ID] = ended{kept, op, now, b.refused.list()}
	if op == lease.OpAbandon {
		h.counts.abandons++
	} else {
		h.counts.teardowns++
	}
	close(b.over)
}

// rest makes durable when addresses were given back. A failure costs a cached name at worst.
func (h *Helper) rest() {
	h.resting.Lock()
	defer h.resting.Unlock()
	h.mu.Lock()
	released := maps.Clone(h.released)
	h.mu.Unlock()
	if err := h.cfg.Store.Rest(released); err != nil {
		h.log.Error("record released addresses", "cause", err)
	}
}
