package boxes

import (
	"cmp"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/gominimal/minhost/installer/api"
)

// seen is one lease as both sides can tell it.
type seen struct {
	lease, name, address string
	state                api.LeaseState
	processes            int
}

// check compares helper and kernel with the model.
func (m *model) check(rt *rapid.T) {
	if err := m.eventually(m.listed); err != nil {
		rt.Fatal(err)
	}
	if err := m.counted(); err != nil {
		rt.Fatal(err)
	}
	if err := m.inKernel(); err != nil {
		rt.Fatal(err)
	}
	for _, b := range m.boxes {
		if !b.attached {
			continue
		}
		a := b.agents[len(b.agents)-1]
		for i, port := range modelPorts {
			admitted := modelPolicies[b.policy].admits[i]
			dial := a.dial
			if admitted {
				dial = a.dialPatiently
			}
			if o := dial("tcp", port); o.OK() != admitted {
				rt.Fatalf("box %s %s with policy %d, port %s: %v", b.plan.Lease, b.name, b.policy, port, o)
			}
		}
	}
}

func (m *model) listed() error {
	leases, err := m.h.leases()
	if err != nil {
		return err
	}
	var got, expected []seen
	for _, l := range leases {
		got = append(got, seen{l.Lease, l.Name, l.Address, l.State, l.Processes})
	}
	for _, b := range m.boxes {
		s := seen{b.plan.Lease, b.name, b.plan.Address, api.LeaseStatePlanned, 0}
		if b.attached {
			s.state, s.processes = api.LeaseStateAttached, len(b.agents)
		}
		expected = append(expected, s)
	}
	for _, list := range [][]seen{got, expected} {
		slices.SortFunc(list, func(a, b seen) int { return cmp.Compare(a.lease, b.lease) })
	}
	if !slices.Equal(got, expected) {
		return fmt.Errorf("the helper has %+v, the model %+v", got, expected)
	}
	return nil
}

// inKernel compares leaves, records and zone; the table is asked through what a box reaches, and at the
// end of a history for what is left.
func (m *model) inKernel() error {
	var leaves, records, names []string
	for _, b := range m.boxes {
		leaves = append(leaves, b.plan.Lease)
		if b.attached {
			records = append(records, b.plan.Lease+".json")
		}
		if b.attached && b.name != "" {
			names = append(names, b.name)
		}
	}
	for _, c := range []struct {
		what string
		want []string
		read func() ([]string, error)
	}{{"leaves", leaves, leafNames}, {"records", records, recordNames}, {"names", names, zoneNames}} {
		got, err := c.read()
		if err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			return fmt.Errorf("%s: the host has %v, the model %v", c.what, got, c.want)
		}
	}
	return nil
}
