package helper

import "context"

// Expecting is what a Tree may have beside the rest: where the first move after a while is a slow one, it can be told
// that one comes.
type Expecting interface {
	// ExpectMove makes a move that follows soon a quick one. It changes nothing, and takes as long as a move.
	ExpectMove() error
}

// expectMove has the kernel begin to wait for what a move waits for when a box is planned: the runner makes the child
// meanwhile, and Attach does the rest. One wait is enough for all boxes that are planned at the same time.
func (h *Helper) expectMove() {
	tree, ok := h.cfg.Tree.(Expecting)
	if !ok || !h.expecting.CompareAndSwap(false, true) {
		return
	}
	h.spawn(func(context.Context) {
		defer h.expecting.Store(false)
		if err := tree.ExpectMove(); err != nil {
			h.log.Debug("the first move will wait", "cause", err)
		}
	})
}
