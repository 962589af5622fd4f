package verify

import (
	"slices"

	"github.com/gominimal/minhost/installer/api"
)

// Merge puts rows of several sources together, in order. Two rows of one name are one fact seen
// twice: what was observed beats what was not, and of two observations the worse counts.
func Merge(sources ...[]Row) Report {
	var r Report
	at := map[string]int{}
	for _, row := range slices.Concat(sources...) {
		i, twice := at[row.Name]
		switch {
		case !twice:
			at[row.Name] = len(r.Rows)
			r.Rows = append(r.Rows, row)
		case outweighs(row.State, r.Rows[i].State):
			r.Rows[i] = row
		}
	}
	return r
}

// outweighs says whether a replaces b. Unknown is the one state that everything replaces.
func outweighs(a, b State) bool {
	if a == Unknown || b == Unknown {
		return a != Unknown
	}
	return slices.Index(states, a) > slices.Index(states, b)
}

// FromChecks are the rows of the helper's Verify.
func FromChecks(checks []api.Check) []Row {
	rows := make([]Row, 0, len(checks))
	for _, c := range checks {
		rows = append(rows, Row{c.Name, checkState(c.State), c.Detail, c.Loses, c.Next})
	}
	return rows
}

func checkState(s api.CheckState) State {
	switch s {
	case api.CheckStateOK:
		return OK
	case api.CheckStateWarning:
		return Warning
	case api.CheckStateFailed:
		return Failed
	}
	return Unknown
}
