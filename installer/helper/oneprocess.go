package helper

import (
	"fmt"

	"github.com/gominimal/minhost/installer/api"
)

// Ready is what a Range may have beside Free: it fails while the range as a whole cannot be used, as on
// a Mac on which some address is missing. A connection to an absent address of it hangs instead of
// failing, so none is given away then.
type Ready interface{ Ready() error }

// rangeReady asks before an address is chosen.
func (h *Helper) rangeReady(named bool) error {
	r, ok := h.cfg.Range.(Ready)
	if !ok || !named {
		return nil
	}
	if err := r.Ready(); err != nil {
		return &api.RangeUnavailable{Message: err.Error(), Next: "as root: minhost apply --only range; or plan the box without a name"}
	}
	return nil
}

// oneProcess is the answer to Join where nothing would hold a second process in the box.
func oneProcess(id string) error {
	return &api.NotSupported{Message: fmt.Sprintf("join: on this system a box is its one attached process, and lease %s has it", id),
		Next: "start further processes from the attached one"}
}
