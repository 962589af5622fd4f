package nft

import (
	"maps"
	"slices"

	"github.com/gominimal/minhost/installer/lease"
)

// state is what the table holds: the verdict of each leaf, and the policies that they share. Equal
// policies have one id, and so one copy of their elements. It is a value: changes make a new one,
// so that a batch that failed changes nothing here.
type state struct {
	marks  Marks
	leaves map[uint64]entry
	ids    map[string]uint32 // by compiled.key
	last   uint32            // id given last
}

// entry is a leaf with its compiled policy.
type entry struct {
	verdict  lease.Verdict
	compiled compiled
	key      string
}

func newState(m Marks) state {
	return state{marks: m, leaves: map[uint64]entry{}, ids: map[string]uint32{}}
}

// with returns the state in which v is v.Leaf's verdict.
func (s state) with(v lease.Verdict) state {
	s.leaves, s.ids = maps.Clone(s.leaves), maps.Clone(s.ids)
	s.inherit(v)
	s.set(v)
	s.forget()
	return s
}

// inherit gives the new policy of a leaf the id of the old one when no other leaf has that: what both say is
// not written again. An interval set takes a millisecond and more to lose ten elements. Denied subnets stay
// as they are under one id: they are written before the rest, beside those of the old policy.
func (s *state) inherit(v lease.Verdict) {
	old, had := s.leaves[v.Leaf]
	key := compile(v.Policy).key()
	if _, known := s.ids[key]; !had || known || !slices.Equal(old.verdict.Policy.DenySubnets, v.Policy.DenySubnets) {
		return
	}
	for leaf, e := range s.leaves {
		if leaf != v.Leaf && e.key == old.key {
			return
		}
	}
	s.ids[key] = s.ids[old.key]
	delete(s.ids, old.key)
}

// without returns the state in which the leaf is unknown.
func (s state) without(leaf uint64) state {
	s.leaves, s.ids = maps.Clone(s.leaves), maps.Clone(s.ids)
	delete(s.leaves, leaf)
	s.forget()
	return s
}

// adopt fills an empty state with verdicts. A policy keeps the id that the kernel has for a leaf
// with it, so that a process that starts anew writes nothing over what is right already.
func (s *state) adopt(all []lease.Verdict, kernel map[uint64]uint32) {
	taken := map[uint32]bool{}
	for _, id := range kernel {
		s.last = max(s.last, id) // new ids are not the kernel's
	}
	for _, v := range all {
		key := compile(v.Policy).key()
		id, ok := kernel[v.Leaf]
		if _, has := s.ids[key]; !has && ok && id != 0 && !taken[id] {
			s.ids[key] = id
			taken[id] = true
		}
	}
	for _, v := range all {
		s.set(v)
	}
}

// verdicts of all leaves, by leaf.
func (s state) verdicts() []lease.Verdict {
	var out []lease.Verdict
	for _, leaf := range slices.Sorted(maps.Keys(s.leaves)) {
		out = append(out, s.leaves[leaf].verdict)
	}
	return out
}

func (s *state) set(v lease.Verdict) {
	c := compile(v.Policy)
	e := entry{verdict: v, compiled: c, key: c.key()}
	s.leaves[v.Leaf] = e
	if _, ok := s.ids[e.key]; !ok {
		s.last++
		for s.last == 0 || s.taken(s.last) {
			s.last++
		}
		s.ids[e.key] = s.last
	}
}

func (s *state) taken(id uint32) bool {
	for _, used := range s.ids {
		if used == id {
			return true
		}
	}
	return false
}

// forget drops the ids of policies that no leaf has.
func (s *state) forget() {
	used := map[string]bool{}
	for _, e := range s.leaves {
		used[e.key] = true
	}
	maps.DeleteFunc(s.ids, func(k string, _ uint32) bool { return !used[k] })
}

// elements of the whole state, without the fixed ones.
func (s state) elements() []setElement {
	var out []setElement
	done := map[string]bool{}
	for _, leaf := range slices.Sorted(maps.Keys(s.leaves)) {
		e := s.leaves[leaf]
		id := s.ids[e.key]
		out = append(out, leafElements(s.marks, e.verdict, id)...)
		if !done[e.key] {
			done[e.key] = true
			out = append(out, e.compiled.elements(id)...)
		}
	}
	return out
}

// leafOnly returns the elements that a leaf has or brings: its own, and its policy's when the other
// state does not have that policy.
func (s state) leafOnly(leaf uint64, other state) []setElement {
	e, ok := s.leaves[leaf]
	if !ok {
		return nil
	}
	out := leafElements(s.marks, e.verdict, s.ids[e.key])
	if id, ok := other.ids[e.key]; !ok || id != s.ids[e.key] {
		out = append(out, e.compiled.elements(s.ids[e.key])...)
	}
	return out
}

// change returns what has to be deleted and added to go from one state to the next, where they
// differ in this leaf only.
func change(from, to state, leaf uint64) (del, add []setElement) {
	before, after := from.leafOnly(leaf, to), to.leafOnly(leaf, from)
	had := map[setElement]bool{}
	for _, e := range before {
		had[e] = true
	}
	for _, e := range after {
		if had[e] {
			delete(had, e)
			continue
		}
		add = append(add, e)
	}
	for _, e := range before {
		if had[e] {
			del = append(del, e)
		}
	}
	return del, add
}

// deniedFirst parts denied subnets from the rest, to be sent before it. Elements of a batch are not visible at
// one instant: those of interval sets are when the set's copy is put in place, one set behind the other, and
// those of the map of policies before all of them (Linux 6.18, nf_tables_commit). A box would be open, or have
// its new list, before its denied subnets are.
func deniedFirst(all []setElement) (denied, rest []setElement) {
	for _, e := range all {
		if e.set == setDeny4 || e.set == setDeny6 {
			denied = append(denied, e)
		} else {
			rest = append(rest, e)
		}
	}
	return denied, rest
}
