package linux

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gominimal/minhost/linux/nft"
)

// ErrIncapable is a kernel without something that the table needs. The table is one batch: none of it can be there then.
var ErrIncapable = errors.New("no verdicts on this kernel")

// capable tries what the table needs, when it is not there.
func capable(ctx context.Context, present bool, missing func(context.Context) ([]string, error)) error {
	if present {
		return nil
	}
	if missing == nil {
		missing = nft.Missing
	}
	lacks, err := missing(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("try what the table needs: %w", err)
	case len(lacks) > 0:
		return fmt.Errorf("%w: %s", ErrIncapable, strings.Join(lacks, "; "))
	}
	return nil
}

// Capable says why this kernel can hold no table; nil when it holds it already, or could.
func (g Ground) Capable(ctx context.Context) error {
	return g.table(func(t *nft.Table) error {
		present, _, err := t.Probe(ctx)
		if err != nil {
			return err
		}
		return capable(ctx, present, nil)
	})
}
