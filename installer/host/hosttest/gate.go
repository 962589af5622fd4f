package hosttest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/gominimal/minhost/installer/host"
)

// ErrCut is the crash.
var ErrCut = errors.New("cut here")

// Tally counts the changes that a gate was asked for.
type Tally struct {
	mu      sync.Mutex
	cut     int
	changes []string
}

// Count returns a gate that lets everything through, and its tally.
func Count() (host.Gate, *Tally) { return Cut(0) }

// Cut returns a gate that refuses the n-th change (from 1) and every later one, as if the process
// had been killed just before it. With n below 1 nothing is refused.
func Cut(n int) (host.Gate, *Tally) {
	t := &Tally{cut: n}
	return t.pass, t
}

// Fail returns a gate that refuses, with err, each change for which refuse says so, and lets the
// others through: a full disk, not a crash.
func Fail(err error, refuse func(change string) bool) host.Gate {
	return func(change string) error {
		if refuse(change) {
			return err
		}
		return nil
	}
}

func (t *Tally) pass(change string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes = append(t.changes, change)
	if t.cut > 0 && len(t.changes) >= t.cut {
		return fmt.Errorf("%w: before change %d (%s)", ErrCut, len(t.changes), change)
	}
	return nil
}

// N is the number of changes asked for.
func (t *Tally) N() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.changes)
}

// Changes lists them in order.
func (t *Tally) Changes() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.changes...)
}
