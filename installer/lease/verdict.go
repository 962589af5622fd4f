package lease

import (
	"net/netip"
	"slices"
)

// Verdict is what the kernel must hold for one box: the wanted state of the table.
type Verdict struct {
	// Leaf is the id of the box's cgroup: the inode of the open directory, never of a path
	// looked up again.
	Leaf uint64
	// Number is the lease number, 1 to 65535, in the low 16 bits of packet and ct marks.
	Number uint16
	// Address is the box's own loopback address; invalid for a box without one.
	Address netip.Addr
	// Policy has addresses only: rules by box are resolved.
	Policy Policy
	// From are the lease numbers of the boxes that the policy lets in; every box when FromEveryBox.
	From         []uint16
	FromEveryBox bool
	// Generation changes with the policy: flows of an older one are judged anew.
	Generation uint8
	// Cutting: the policy is new, and flows of an older one are being ended.
	Cutting bool
	// Uncut: that failed. What is judged by its first packet alone is refused until it succeeds.
	Uncut bool
}

// Names tells which box has a name now.
type Names func(name string) (number uint16, address netip.Addr, ok bool)

// Verdict returns what the table must hold for this lease with this leaf. Rules by box are those of the
// boxes that live now.
func (l Lease) Verdict(leaf uint64, names Names) Verdict {
	v := Verdict{Leaf: leaf, Number: l.Number, Address: l.Address, Policy: l.Policy, Cutting: l.Cutting, Generation: l.Generation}
	v.Policy.Rules = nil
	for _, r := range l.Policy.Rules {
		if r.Box != "" {
			_, a, ok := names(r.Box)
			if !ok || !a.IsValid() {
				continue
			}
			r.To = netip.PrefixFrom(a, a.BitLen())
		}
		v.Policy.Rules = append(v.Policy.Rules, r)
	}
	for _, name := range l.Policy.IngressBoxes {
		if name == EveryBox {
			v.FromEveryBox = true
		} else if n, _, ok := names(name); ok {
			v.From = append(v.From, n)
		}
	}
	slices.Sort(v.From)
	return v
}

// NamesBox says whether a policy speaks of a box.
func (p Policy) NamesBox(name string) bool {
	return slices.Contains(p.IngressBoxes, name) || slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.Box == name })
}
