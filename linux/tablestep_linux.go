package linux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/linux/nft"
)

// TableStep makes the one nftables table, as a skeleton: no box is in it, so every box is refused.
// While a helper runs it is the only writer: the step asks it.
type TableStep struct {
	Ground Ground
	// Repair asks a running helper to mend the table; running is false when there is none.
	Repair func(context.Context) (running bool, err error)
	// Missing says what the table needs and the kernel lacks; nil for nft.Missing.
	Missing func(context.Context) ([]string, error)
}

var _ installer.Step = TableStep{}

// ID implements installer.Step.
func (TableStep) ID() installer.ID { return "table" }

// Describe implements installer.Step.
func (TableStep) Describe() string {
	return "make the nftables table inet minhost (its own hooks; no other table is touched)"
}

// Lifetime implements installer.Step.
func (TableStep) Lifetime() installer.Lifetime { return installer.Boot }

// Required implements installer.Step.
func (TableStep) Required() bool { return true }

// Probe lists the table over netlink and compares its structure. Elements are the helper's. Marks of planes that
// somebody else uses are in the way until the table has them.
func (s TableStep) Probe(ctx context.Context) (installer.Observation, error) {
	o, err := s.probe(ctx)
	if err != nil || s.Ground.Planes.Bits() == 0 || o.State != installer.Absent && o.State != installer.Drifted {
		return o, err
	}
	t, err := s.bare()
	if err != nil {
		return o, err
	}
	clashes, err := t.PlaneClashes(ctx)
	if len(clashes) > 0 {
		o.State, o.Detail, o.Next = installer.Blocked, "marks of planes: "+strings.Join(clashes, "; "), "choose other bits: planes in "+DefaultLayout().Config
	}
	return o, errors.Join(err, t.Close())
}

func (s TableStep) probe(ctx context.Context) (installer.Observation, error) {
	o := installer.Observation{Private: true, Loses: "boxes reach nothing: no rule approves their packets", Next: "sudo nft list table inet minhost"}
	if os.Geteuid() != 0 {
		o.State, o.Detail, o.Next = installer.Unknown, "listing rules needs root", "sudo minhost verify"
		return o, nil
	}
	foreign, err := s.foreign(ctx)
	if err != nil {
		return o, err
	}
	if foreign {
		o.State, o.Detail = installer.Foreign, errForeign.Error()
		return o, nil
	}
	var present bool
	var differ []string
	err = s.Ground.table(func(t *nft.Table) (err error) {
		present, differ, err = t.Probe(ctx)
		return err
	})
	if o, done := withoutTree(o, err); done {
		return o, nil
	}
	switch {
	case err != nil:
		return o, err
	case !present:
		o.State, o.Detail = installer.Absent, "no table inet minhost"
		if err := capable(ctx, false, s.Missing); errors.Is(err, ErrIncapable) {
			o.State, o.Detail = installer.Blocked, err.Error()
			o.Loses, o.Next = incapableLoses, "minhost finalize-install --only STEP,... with the steps of the plan but for belt and table"
		}
	case len(differ) > 0:
		o.State, o.Detail = installer.Drifted, "the table differs: "+strings.Join(differ, "; ")
	default:
		o.State, o.Detail, o.Next = installer.Satisfied, "table inet minhost is as wanted, read back from the kernel", ""
	}
	return o, nil
}

// incapableLoses is what a host without the table cannot do.
const incapableLoses = "no box can be confined; names, addresses and boxes with egress open can be had"

// errForeign is a table of our name that somebody else made.
var errForeign = errors.New("there is a table inet minhost that minhost did not make")

// foreign looks at the table, tree or no tree.
func (s TableStep) foreign(ctx context.Context) (foreign bool, err error) {
	t, err := s.bare()
	if err != nil {
		return false, err
	}
	foreign, err = t.Foreign(ctx)
	return foreign, errors.Join(err, t.Close())
}

// Apply writes the skeleton, or lets a running helper write the whole table. A helper takes its table
// back from whoever replaced it; without one a table that came between probe and change stays.
func (s TableStep) Apply(ctx context.Context, _ *installer.Record) error {
	if running, err := s.Repair(ctx); running {
		return err
	}
	if err := s.refuseForeign(ctx); err != nil {
		return err
	}
	if err := s.Ground.Gate.Pass("nft refill table inet minhost"); err != nil {
		return err
	}
	return kept(s.Ground.table(func(t *nft.Table) error { return t.Refill(ctx, nil) }))
}

// kept explains the kernel's refusal to root: on a host without a belt the table belongs to a socket, and whoever
// has it from the helper that made it keeps it for the next one.
func kept(err error) error {
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("table inet minhost belongs to a helper that does not run, and to the next one: start that, then apply again (as root: systemctl start minhost-helper, or: minhost supervise): %w", err)
	}
	return err
}

func (s TableStep) refuseForeign(ctx context.Context) error {
	foreign, err := s.foreign(ctx)
	if err == nil && foreign {
		err = fmt.Errorf("%w; look: nft list table inet minhost", errForeign)
	}
	return err
}

// Undo deletes our table, which needs no tree, from under no live box.
func (s TableStep) Undo(ctx context.Context, _ installer.Record) error {
	if err := s.Ground.Gate.Pass("nft delete table inet minhost"); err != nil {
		return err
	}
	if err := errors.Join(s.Ground.vacant(), s.refuseForeign(ctx)); err != nil {
		return err
	}
	t, err := s.bare()
	if err != nil {
		return err
	}
	return errors.Join(kept(t.Destroy(ctx)), t.Close())
}

// bare opens the table without a tree, to look whose it is and to remove it.
func (s TableStep) bare() (*nft.Table, error) {
	return nft.New(nft.Config{Boxes: 1, Level: 1, Marks: s.Ground.Marks, Planes: s.Ground.Planes}, s.Ground.Log)
}
