package installer

import (
	"context"
	"errors"
	"fmt"
)

// Deed is what Apply did with a step.
type Deed int

const (
	// Skipped: it was satisfied.
	Skipped Deed = iota
	// Applied: it was changed.
	Applied
	// Left: an optional step that cannot be had on this host.
	Left
)

func (d Deed) String() string {
	return [...]string{"skipped", "applied", "left"}[d]
}

// Result is one step of a Report; Row holds what the probe right before found.
type Result struct {
	Row
	Deed Deed
}

// Report lists the steps that Apply came to, in order.
type Report struct{ Results []Result }

// Changed is the number of steps that were applied.
func (r Report) Changed() int {
	n := 0
	for _, x := range r.Results {
		if x.Deed == Applied {
			n++
		}
	}
	return n
}

// Refused is a required step that Apply will not touch: somebody else's, impossible here, or not
// visible without root.
type Refused struct{ Row Row }

func (e *Refused) Error() string {
	s := fmt.Sprintf("step %s: %s: %s", e.Row.ID, e.Row.State, printable(e.Row.Detail))
	if e.Row.Next != "" {
		s += "; look: " + e.Row.Next
	}
	return s
}

// Apply makes the chosen steps Satisfied. It probes all of them first and changes nothing when a
// required one is Foreign, Blocked or Unknown; then it probes each again right before its change.
// It stops at the first error. The report covers what was done until then.
func (e *Engine) Apply(ctx context.Context, o Options) (Report, error) {
	var report Report
	steps, err := e.selected(o)
	if err != nil {
		return report, err
	}
	rank, err := e.rank()
	if err != nil {
		return report, err
	}
	j, err := openJournal(e.store, rank)
	if err != nil {
		return report, err
	}
	if err := e.preflight(ctx, steps); err != nil {
		return report, err
	}
	for i, s := range steps {
		result, err := e.apply(ctx, j, s, o.AtBoot)
		if err != nil {
			return report, &Stopped{Step: s.ID(), At: i + 1, Of: len(steps), Changed: report.Changed(), Cause: err}
		}
		report.Results = append(report.Results, result)
	}
	return report, nil
}

// Stopped is an Apply that did not come to its end.
type Stopped struct {
	Step    ID
	At, Of  int
	Changed int // steps changed before this one
	Cause   error
}

func (e *Stopped) Error() string {
	return fmt.Sprintf("apply stopped at step %d of %d: %v; mend the cause and run the same command again, "+
		"or take back what was done: minhost finalize-install --undo", e.At, e.Of, e.Cause)
}

func (e *Stopped) Unwrap() error { return e.Cause }

// preflight refuses before the first change, and names everything that is in the way at once.
func (e *Engine) preflight(ctx context.Context, steps []Step) error {
	var errs []error
	for _, s := range steps {
		if row := e.row(ctx, s); refused(row) {
			errs = append(errs, &Refused{Row: row})
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(errs...)
}

func refused(r Row) bool {
	return r.Required && r.State != Satisfied && r.State != Absent && r.State != Drifted
}

func (e *Engine) apply(ctx context.Context, j *journal, s Step, atBoot bool) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	row := e.row(ctx, s)
	switch {
	case refused(row):
		return Result{}, &Refused{Row: row}
	case row.State == Satisfied:
		return Result{row, Skipped}, e.settle(j, s)
	case row.State != Absent && row.State != Drifted:
		e.log.Info("left", "step", s.ID(), "state", row.State.String(), "detail", row.Detail)
		return Result{row, Left}, nil
	}
	rec := e.record(j, s)
	rec.BootID, rec.Done, rec.AtBoot = e.bootID, false, atBoot
	if err := j.put(rec); err != nil {
		return Result{}, err
	}
	rec.save = j.put
	if err := e.guard(s, "apply", func() error { return s.Apply(ctx, &rec) }); err != nil {
		return Result{}, err
	}
	rec.Done = true
	if err := j.put(rec); err != nil {
		return Result{}, err
	}
	e.log.Info("applied", "step", s.ID(), "was", row.State.String())
	return Result{row, Applied}, nil
}

// record returns the record to go on with. What a Boot step kept in another boot went with that
// boot; what a Persistent step kept is the state before its very first change.
func (e *Engine) record(j *journal, s Step) Record {
	rec, ok := j.find(s.ID())
	if ok && (s.Lifetime() == Persistent || rec.BootID == e.bootID) {
		return rec
	}
	return Record{Step: s.ID(), Lifetime: s.Lifetime().String()}
}

// settle marks a change done that a crash cut off between the change and its last journal entry.
func (e *Engine) settle(j *journal, s Step) error {
	rec, ok := j.find(s.ID())
	if !ok || rec.Done || (s.Lifetime() == Boot && rec.BootID != e.bootID) {
		return nil
	}
	rec.Done = true
	return j.put(rec)
}
