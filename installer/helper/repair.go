package helper

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer/api"
)

// WatchTable mends the table whenever somebody else changed it, until the context ends. Between
// the change and the mend the belt refuses every box.
func (h *Helper) WatchTable(ctx context.Context) {
	if h.cfg.Table == nil {
		return
	}
	failed := false
	for {
		var again <-chan time.Time // only behind a failure; the table may not change again by itself
		if failed {
			again = time.After(h.cfg.RetryAfter)
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
		case _, open := <-h.cfg.Table.Changed():
			if !open {
				return
			}
		}
		_, err := h.mend(ctx)
		if failed = err != nil; failed {
			h.log.Error("mend table", "cause", err)
		}
	}
}

// mend compares the table with the leases and refills it when it differs.
func (h *Helper) mend(ctx context.Context) ([]string, error) {
	h.repairing.Lock()
	defer h.repairing.Unlock()
	h.mu.Lock()
	want := h.verdicts()
	h.mu.Unlock()
	differences, err := h.cfg.Table.Compare(ctx, want)
	if err != nil {
		return nil, fmt.Errorf("compare table: %w", err)
	}
	if len(differences) == 0 {
		return nil, nil
	}
	// What was true when the comparison began may be over: a lease that came or went meanwhile
	// would be a difference of its own. The second look is with the leases of now, and none comes or
	// goes before the table is as they are.
	h.refilling.Lock()
	defer h.refilling.Unlock()
	h.mu.Lock()
	want = h.verdicts()
	h.mu.Unlock()
	if err := h.cfg.Table.Refill(ctx, want); err != nil {
		return differences, fmt.Errorf("refill table: %w", err)
	}
	h.log.Warn("table mended", "differences", strings.Join(differences, "; "))
	h.events.send(0, api.Event{Kind: api.EventKindRepaired, Time: stamp(h.cfg.Now()), Text: "table mended: " + api.Text(strings.Join(differences, "; "))})
	return differences, nil
}

// Repaired tells watchers of what somebody else put right on this host.
func (h *Helper) Repaired(what string) {
	h.events.send(0, api.Event{Kind: api.EventKindRepaired, Time: stamp(h.cfg.Now()), Text: api.Text(what)})
}

func (h *Helper) repair(ctx context.Context, _ request, _ api.RepairIn) (api.RepairOut, error) {
	if h.cfg.Table == nil {
		return api.RepairOut{Differences: []string{}}, nil
	}
	d, err := h.mend(ctx)
	if err != nil {
		return api.RepairOut{}, internal("repair", err)
	}
	return api.RepairOut{Differences: append([]string{}, d...)}, nil
}

// verify makes the checks that need root and the leases.
func (h *Helper) verify(ctx context.Context, _ request, _ api.VerifyIn) (api.VerifyOut, error) {
	h.verifying.Lock() // the self-test makes a leaf and a process: one at a time
	defer h.verifying.Unlock()
	checks := h.cfg.Checker.Checks(ctx)
	if h.cfg.OneProcess {
		return api.VerifyOut{Checks: append(checks, h.checkLeaves())}, nil
	}
	checks = append(checks, h.checkTable(ctx), h.checkLeaves(), h.checkRefusals(ctx))
	return api.VerifyOut{Checks: checks}, nil
}

func (h *Helper) checkTable(ctx context.Context) api.Check {
	c := api.Check{Name: "table", State: api.CheckStateOK, Next: "as root: minhost apply"}
	if h.cfg.Table == nil {
		c.State, c.Detail, c.Loses = api.CheckStateFailed, h.cfg.Unenforceable, "no box can be confined"
		return c
	}
	h.repairing.Lock()
	defer h.repairing.Unlock()
	h.mu.Lock()
	want := h.verdicts()
	h.mu.Unlock()
	d, err := h.cfg.Table.Compare(ctx, want)
	switch {
	case err != nil:
		c.State, c.Detail = api.CheckStateFailed, err.Error()
	case len(d) > 0:
		c.State, c.Detail = api.CheckStateFailed, api.Text(strings.Join(d, "; "))
	default:
		c.Detail, c.Next = fmt.Sprintf("%d verdicts, read back from the kernel", len(want)), ""
	}
	if c.State == api.CheckStateFailed {
		c.Loses = "boxes are refused until it is mended"
	}
	return c
}

// checkLeaves compares the leases with the directories and their ids.
func (h *Helper) checkLeaves() api.Check {
	c := api.Check{Name: "leaves match the leases", State: api.CheckStateOK, Next: "minhost ls"}
	names, err := h.cfg.Tree.List()
	if err != nil {
		c.State, c.Detail = api.CheckStateFailed, err.Error()
		return c
	}
	var wrong []string
	h.mu.Lock()
	ids := map[string]uint64{}
	for id, b := range h.boxes {
		if b.leaf != nil {
			ids[id] = b.leaf.ID()
		}
	}
	h.mu.Unlock()
	for id, want := range ids {
		l, err := h.cfg.Tree.Open(id)
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("the leaf of %s is gone: end that lease", h.boxName(id)))
			continue
		}
		if l.ID() != want {
			wrong = append(wrong, fmt.Sprintf("the leaf of %s was made again under another id: end that lease", h.boxName(id)))
		}
		l.Close()
	}
	for _, name := range names {
		if _, ok := ids[name]; !ok {
			wrong = append(wrong, fmt.Sprintf("%s is no lease's leaf; its processes reach nothing", api.Text(name)))
		}
	}
	if len(wrong) > 0 {
		c.State, c.Detail, c.Loses = api.CheckStateFailed, strings.Join(wrong, "; "), "those boxes reach nothing"
		return c
	}
	c.Detail, c.Next = fmt.Sprintf("%d leaves", len(ids)), ""
	return c
}
