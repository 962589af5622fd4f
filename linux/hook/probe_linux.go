package hook

import (
	"fmt"

	"github.com/gominimal/minhost/installer"
)

// Report is what Probe read.
type Report struct {
	// State is Satisfied (each program once), Absent (none of ours) or Drifted (another version, a copy, or
	// some are missing). Who asks may know of more states.
	State installer.State
	// Detail is one line: the first thing that is not as it should be, or that all is.
	Detail string
	// Foreign are programs of others on the same hooks; they are left alone.
	Foreign []string
}

// Probe asks the kernel what is attached and compares the sums that it made of the instructions when it loaded
// them. Needs CAP_SYS_ADMIN.
func Probe(programs []Program) (Report, error) {
	var r Report
	var wrong []string
	none := true
	for _, p := range programs {
		found, others, err := p.List()
		if err != nil {
			return r, err
		}
		r.Foreign = append(r.Foreign, others...)
		none = none && len(found) == 0
		switch {
		case len(found) == 0:
			wrong = append(wrong, fmt.Sprintf("%s is not attached (%s)", p.Name, p.Attach))
		case len(found) > 1:
			wrong = append(wrong, fmt.Sprintf("%s is attached %d times", p.Role, len(found)))
		case !found[0].Right:
			wrong = append(wrong, fmt.Sprintf("%s is attached, want %s", found[0].Name, p.Name))
		}
		Close(found)
	}
	switch {
	case none:
		r.State, r.Detail = installer.Absent, "none of the programs is attached"
	case len(wrong) > 0:
		r.State, r.Detail = installer.Drifted, wrong[0]
	default:
		r.State, r.Detail = installer.Satisfied, fmt.Sprintf("%d programs attached, each once", len(programs))
	}
	return r, nil
}
