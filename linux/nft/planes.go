package nft

import (
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
)

// Plane is how flows to other hosts are told by whose they are, for hosts whose admin routes, shapes or logs by
// that. The zero value is off: not one rule more.
type Plane struct {
	// Mark is the bit of conntrack marks that flows of the plane get, one above the low 16 that nobody else uses.
	Mark uint32
	// Source4 and Source6 are the addresses that its flows leave from; invalid for what routing gives them.
	Source4, Source6 netip.Addr
}

// Planes are the two: flows that boxes start, and all others that this host starts.
type Planes struct{ Cohort, Node Plane }

// Bits are the bits of conntrack marks that name planes.
func (p Planes) Bits() uint32 { return p.Cohort.Mark | p.Node.Mark }

// Check refuses bits that mean something else, and addresses of a plane that has no bit.
func (p Planes) Check(m Marks) error {
	seen := m.OrDefault().Bits() | 0xffff
	for _, one := range p.all() {
		if one.Mark == 0 && (one.Source4.IsValid() || one.Source6.IsValid()) {
			return errors.New("planes: a source needs a mark, by which its flows are told")
		}
		if one.Mark != 0 && bits.OnesCount32(one.Mark) != 1 || one.Mark&seen != 0 {
			return fmt.Errorf("planes: the mark %#x must be one bit of its own above the low 16, not one of %#x", one.Mark, seen)
		}
		if bad := one.Source4.IsValid() && !one.Source4.Is4() || one.Source6.IsValid() && (!one.Source6.Is6() || one.Source6.Is4In6() || one.Source6.Zone() != ""); bad {
			return fmt.Errorf("planes: sources %s and %s: want one address of each family at most", one.Source4, one.Source6)
		}
		seen |= one.Mark
	}
	return nil
}

func (p Planes) all() []Plane { return []Plane{p.Cohort, p.Node} }
