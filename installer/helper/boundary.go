package helper

import (
	"fmt"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// boundaryTo is the runner's word about a box. What makes a box strict happens behind Attach, in processes that the
// helper does not look into, so that no rule here depends on it.
func boundaryTo(l lease.Lease) api.Boundary {
	if l.Strict {
		return api.BoundaryStrict
	}
	return api.BoundaryCooperative
}

// mayDeclare says whether Update may change the word: it can be taken back, but not given behind Plan, when
// processes of the box run.
func (h *Helper) mayDeclare(b *box, to api.Boundary) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if to != api.BoundaryStrict || b.Strict {
		return nil
	}
	return &api.InvalidArgument{Field: "boundary", Message: fmt.Sprintf("boundary: lease %s is cooperative, and a box becomes strict in Plan only", b.ID),
		Next: "plan a new box with boundary strict"}
}

// declare takes the word back where a call says that not all of the box is strict. It is on record before the call goes
// on, so that the next helper does not claim what is not so.
func (h *Helper) declare(b *box, to api.Boundary) error {
	if to == api.BoundaryStrict {
		return nil
	}
	b.changing.Lock() // no record may be written behind the one that Teardown removes
	defer b.changing.Unlock()
	h.mu.Lock()
	was := b.Strict && b.State == lease.Attached
	if was {
		b.Strict = false
	}
	h.mu.Unlock()
	if !was {
		return nil
	}
	if err := h.record(b); err != nil {
		h.mu.Lock()
		b.Strict = true // as the record says, so that the next call writes it
		h.mu.Unlock()
		return internal("record lease", err)
	}
	h.log.Info("cooperative from now on", "lease", b.ID, "box", b.Name)
	return nil
}
