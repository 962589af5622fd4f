package installer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
)

// Engine applies and undoes steps. It keeps nothing between calls: what was done is in the
// journal, what is there is in the probes. Callers hold the lock of DESIGN.md section 2 around
// Apply and Undo; Plan needs neither the lock nor root.
type Engine struct {
	steps  []Step
	store  Store
	bootID string
	log    *slog.Logger
}

// New returns an engine for steps in the order of Apply. bootID is the kernel's name for this
// boot; a record of another boot says nothing about what a Boot step left in the kernel. A nil
// log drops every line.
func New(steps []Step, store Store, bootID string, log *slog.Logger) *Engine {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Engine{steps: steps, store: store, bootID: bootID, log: log}
}

// Options choose the steps of Apply.
type Options struct {
	// Only lists steps by id; nil means all.
	Only []ID
	// Boot takes only the steps of lifetime Boot: what the boot unit applies again.
	Boot bool
	// AtBoot says that the boot itself applies them, and no hand: see Engine.ByHand.
	AtBoot bool
}

// ByHand lists the steps that were applied in this boot, other than by the boot itself: what they left
// says nothing about whether a reboot brings it back.
func (e *Engine) ByHand() ([]ID, error) {
	rank, err := e.rank()
	if err != nil {
		return nil, err
	}
	j, err := openJournal(e.store, rank)
	if err != nil {
		return nil, err
	}
	var ids []ID
	for _, r := range j.records {
		if r.BootID == e.bootID && !r.AtBoot {
			ids = append(ids, r.Step)
		}
	}
	return ids, nil
}

// selected returns the steps that the options choose, in order.
func (e *Engine) selected(o Options) ([]Step, error) {
	rank, err := e.rank()
	if err != nil {
		return nil, err
	}
	for _, id := range o.Only {
		if _, ok := rank[id]; !ok {
			return nil, fmt.Errorf("step %q: no such step; there are: %s", id, strings.Join(e.ids(), ", "))
		}
	}
	var steps []Step
	for _, s := range e.steps {
		if o.Only != nil && !slices.Contains(o.Only, s.ID()) {
			continue
		}
		if o.Boot && s.Lifetime() != Boot {
			continue
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// rank numbers the steps; an id given twice is a mistake in the program.
func (e *Engine) rank() (map[ID]int, error) {
	rank := map[ID]int{}
	for i, s := range e.steps {
		if _, twice := rank[s.ID()]; twice {
			return nil, fmt.Errorf("step %q: two steps have this id", s.ID())
		}
		rank[s.ID()] = i
	}
	return rank, nil
}

func (e *Engine) ids() []string {
	ids := make([]string, len(e.steps))
	for i, s := range e.steps {
		ids[i] = string(s.ID())
	}
	return ids
}

func (e *Engine) step(id ID) (Step, bool) {
	i := slices.IndexFunc(e.steps, func(s Step) bool { return s.ID() == id })
	if i < 0 {
		return nil, false
	}
	return e.steps[i], true
}

// probe asks a step what is there.
func (e *Engine) probe(ctx context.Context, s Step) (obs Observation, err error) {
	err = e.guard(s, "probe", func() error {
		obs, err = s.Probe(ctx)
		return err
	})
	e.log.Debug("probe", "step", s.ID(), "state", obs.State.String(), "detail", obs.Detail, "error", err)
	return obs, err
}

// errPanic marks a mistake in a step. The engine turns it into an error, since a panic halfway
// would leave the operator without a word about how to go on.
var errPanic = errors.New("internal error")

func (e *Engine) guard(s Step, what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("panic", "step", s.ID(), "in", what, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("step %s: %s: %w: %v", s.ID(), what, errPanic, p)
		}
	}()
	if err := f(); err != nil {
		return fmt.Errorf("step %s: %s: %w", s.ID(), what, err)
	}
	return nil
}
