package nft

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// differences says, one line each, how a listing differs from the wanted ruleset, in chains, rules
// and sets, and in elements when asked. Dynamic sets are compared by definition only.
func differences(want Ruleset, have listed, elements bool) []string {
	if !have.present {
		return []string{"table inet " + tableName + " is missing"}
	}
	var out []string
	if want.strange(have) {
		out = append(out, fmt.Sprintf("the table has the flags %#x, wanted %#x", have.flags, want.flags))
	}
	wanted := map[string]bool{}
	for _, c := range want.Chains {
		wanted[c.Name] = true
		def, ok := have.chains[c.Name]
		switch {
		case !ok:
			out = append(out, fmt.Sprintf("chain %s is missing", c.Name))
			continue
		case def != c.definition():
			out = append(out, fmt.Sprintf("chain %s is %q, wanted %q", c.Name, def, c.definition()))
		}
		out = append(out, ruleDifferences(c, have.rules[c.Name])...)
	}
	for _, name := range slices.Sorted(maps.Keys(have.chains)) {
		if !wanted[name] {
			out = append(out, fmt.Sprintf("chain %s is not ours", name))
		}
	}
	wantedSets := map[string]bool{}
	for _, s := range want.Sets {
		wantedSets[s.Name] = true
		def, ok := have.sets[s.Name]
		switch {
		case !ok:
			out = append(out, fmt.Sprintf("set %s is missing", s.Name))
		case def != s.definition():
			out = append(out, fmt.Sprintf("set %s is %q, wanted %q", s.Name, def, s.definition()))
		case elements && !s.Dynamic:
			out = append(out, elementDifferences(s.Name, lasting(s.Elements, time.Now()), have.elements[s.Name])...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have.sets)) {
		if !wantedSets[name] {
			out = append(out, fmt.Sprintf("set %s is not ours", name))
		}
	}
	return out
}

func ruleDifferences(c Chain, have []string) []string {
	var out []string
	for i, r := range c.Rules {
		want := r.Text()
		switch {
		case i >= len(have):
			out = append(out, fmt.Sprintf("chain %s: rule %d of %d is missing: %s", c.Name, i+1, len(c.Rules), want))
		case have[i] != want:
			out = append(out, fmt.Sprintf("chain %s: rule %d is %q, wanted %q", c.Name, i+1, have[i], want))
		default:
			continue
		}
		return out // later ones are only shifted
	}
	if extra := len(have) - len(c.Rules); extra > 0 {
		out = append(out, fmt.Sprintf("chain %s: %d rules are not ours, the first is %q", c.Name, extra, have[len(c.Rules)]))
	}
	return out
}

func elementDifferences(set string, want, have []Element) []string {
	in := func(list []Element) map[Element]bool {
		m := make(map[Element]bool, len(list))
		for _, e := range list {
			m[e] = true
		}
		return m
	}
	w, h := in(want), in(have)
	count := func(list []Element, other map[Element]bool) (n int, first Element) {
		for _, e := range list {
			if !other[e] {
				if n++; n == 1 {
					first = e
				}
			}
		}
		return n, first
	}
	var out []string
	if n, first := count(want, h); n > 0 {
		out = append(out, fmt.Sprintf("set %s: %d of %d elements are missing, the first is %s", set, n, len(want), first))
	}
	if n, first := count(have, w); n > 0 {
		out = append(out, fmt.Sprintf("set %s: %d elements are not wanted, the first is %s", set, n, first))
	}
	return out
}

// String shows an element as bytes.
func (e Element) String() string {
	s := fmt.Sprintf("%x", e.Key)
	if e.End != "" {
		s += fmt.Sprintf("-%x", e.End)
	}
	if e.Data != "" {
		s += fmt.Sprintf(" : %x", e.Data)
	}
	return s
}
