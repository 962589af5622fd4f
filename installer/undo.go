package installer

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Undo takes back what the journal says was done, last step first, from any prefix of an Apply. It
// goes on past failures and joins them; a step that failed stays in the journal for the next try.
// The journal, and what was made to hold it, go last.
func (e *Engine) Undo(ctx context.Context) error {
	rank, err := e.rank()
	if err != nil {
		return err
	}
	j, err := openJournal(e.store, rank)
	if err != nil {
		return err
	}
	var errs []error
	for _, rec := range slices.Backward(slices.Clone(j.records)) {
		if err := ctx.Err(); err != nil {
			errs = append(errs, fmt.Errorf("undo stopped before step %s: %w", rec.Step, err))
			break
		}
		if err := e.undo(ctx, rec); err != nil {
			errs = append(errs, err)
			continue
		}
		if err := j.drop(rec.Step); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("undo left something: %w\nmend it and go on with: minhost finalize-install --undo", errors.Join(errs...))
	}
	// Also without any record: a crash may have left the journal's temporary file.
	return j.remove()
}

func (e *Engine) undo(ctx context.Context, rec Record) error {
	s, known := e.step(rec.Step)
	if !known {
		return fmt.Errorf("step %s: undo: this version of minhost does not know the step; "+
			"use the version that applied it", rec.Step)
	}
	if rec.Lifetime == Boot.String() && rec.BootID != e.bootID {
		if obs, err := e.probe(ctx, s); err == nil && obs.State == Absent {
			e.log.Info("gone with its boot", "step", rec.Step)
			return nil
		}
	}
	rec.save = nil
	if err := e.guard(s, "undo", func() error { return s.Undo(ctx, rec) }); err != nil {
		return err
	}
	e.log.Info("undone", "step", rec.Step)
	return nil
}
