package verify

import (
	"context"
	"fmt"
	"strings"

	"github.com/gominimal/minhost/resolverd/probe"
)

// Addresses of the answerer and of its box view (DESIGN.md section 2).
const (
	AnswererAddress = "127.0.0.1:15353"
	BoxViewAddress  = "127.0.0.1:15354"
)

// Asker puts the questions of probe.Check to an answerer.
type Asker func(ctx context.Context, addr string) (probe.Result, error)

// Answer asks the answerer at addr, over UDP and TCP, for a name that it has and for what it has
// not: the negative answers must carry their SOA, since without it a Mac stalls every lookup.
func Answer(ctx context.Context, name, addr string, ask Asker) Row {
	row := Row{Name: name, Loses: "names of boxes do not resolve through " + addr, Next: "minhost finalize-install"}
	result, err := ask(ctx, addr)
	if err != nil {
		row.State = Failed
		row.Detail = strings.ReplaceAll(err.Error(), "\n", "; ")
		return row
	}
	return Row{Name: name, State: OK, Detail: fmt.Sprintf("%s answers over UDP and TCP, negatives with SOA; %d lookups, the slowest %d us, serial %d",
		addr, result.Queries, result.Slowest.Microseconds(), result.Serial)}
}
