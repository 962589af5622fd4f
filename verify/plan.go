package verify

import "github.com/gominimal/minhost/installer"

// FromPlan are the rows of the steps' probes. A required step that is not satisfied makes the host
// not ready; an optional one is degraded. What a probe could not see is unknown when the caller is
// not root: the helper's own checks, merged in under the same name, may know it. Nothing is hidden
// from root, so to root an unknown required step is a failed one.
func FromPlan(p installer.Plan, root bool) []Row {
	rows := make([]Row, 0, len(p.Rows))
	for _, r := range p.Rows {
		rows = append(rows, fromStep(r, root))
	}
	return rows
}

func fromStep(r installer.Row, root bool) Row {
	row := Row{Name: string(r.ID), Detail: r.Detail, Loses: r.Loses, Next: r.Next}
	switch {
	case r.State == installer.Satisfied:
		row.State = OK
	case r.State == installer.Unknown && !root:
		row.State = Unknown
	case r.Required:
		row.State = Failed
	default:
		row.State = Degraded
	}
	if row.Next == "" && row.State != OK && fixable(r.State) {
		row.Next = "minhost finalize-install"
	}
	return row
}

// fixable says whether finalize-install would do something about the state: it never touches what
// is somebody else's, and a fact of the host it cannot change.
func fixable(s installer.State) bool {
	return s == installer.Absent || s == installer.Drifted
}
