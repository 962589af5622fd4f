package darwin

import "github.com/gominimal/minhost/installer"

// Parts are the steps of a Mac.
type Parts struct {
	Program, Operator, Range, Loopback, Answerer, Helper, Names installer.Step
}

// Order is the order of apply, and reversed that of undo. The program comes before the jobs that run it;
// the range before its job, which then finds nothing to do; the resolver file behind the answerer: over a
// dead one it stalls every lookup of the zone for up to a minute. So it is the last to come and the first
// to go.
func Order(p Parts) []installer.Step {
	return []installer.Step{p.Program, p.Operator, p.Range, p.Loopback, p.Answerer, p.Helper, p.Names}
}
