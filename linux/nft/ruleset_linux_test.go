package nft

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/nftables/expr"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/verify/golden"
)

// text renders a ruleset for people. Cgroup ids and marks are in host byte order, so the golden is for
// little-endian machines.
func (r Ruleset) text() string {
	var b strings.Builder
	for _, s := range r.Sets {
		fmt.Fprintln(&b, s.definition())
		for _, e := range s.Elements {
			fmt.Fprintln(&b, "  ", e)
		}
	}
	for _, c := range r.Chains {
		fmt.Fprintln(&b, c.definition())
		for _, r := range c.Rules {
			fmt.Fprintln(&b, "  ", r.Text())
		}
	}
	return b.String()
}

// The whole skeleton, to be read in a review. A change of a rule changes this file.
func TestSkeleton(t *testing.T) {
	r, err := Skeleton(Config{Boxes: 0x1234, Level: 2})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/skeleton.txt", []byte(r.text()))
}

// Every chain that is gone to exists, every set that is looked into exists with the length that the
// rule has loaded, and every chain and set is used.
func TestReferences(t *testing.T) {
	r, err := Skeleton(Config{Boxes: 1, Level: 1})
	if err != nil {
		t.Fatal(err)
	}
	sets, chains := map[string]int{}, map[string]int{}
	for _, s := range r.Sets {
		sets[s.Name] = 0
	}
	for _, c := range r.Chains {
		chains[c.Name] = 0
		if c.Hook != nil {
			chains[c.Name] = 1
		}
	}
	count := func(m map[string]int, name string) {
		if _, ok := m[name]; !ok {
			t.Errorf("%s does not exist", name)
		}
		m[name]++
	}
	for _, c := range r.Chains {
		for _, rule := range c.Rules {
			for _, e := range rule {
				switch e := e.(type) {
				case *expr.Lookup:
					count(sets, e.SetName)
				case *expr.Dynset:
					count(sets, e.SetName)
				case *expr.Verdict:
					if e.Chain != "" {
						count(chains, e.Chain)
					}
				}
			}
		}
	}
	for _, m := range []map[string]int{sets, chains} {
		for name, n := range m {
			if n == 0 {
				t.Errorf("%s is not used", name)
			}
		}
	}
}

// Level and boxes are everywhere where a cgroup is asked for.
func TestLevel(t *testing.T) {
	r, err := Skeleton(Config{Boxes: 1, Level: 5})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Chains {
		for _, rule := range c.Rules {
			for i, e := range rule {
				s, ok := e.(*expr.Socket)
				if !ok || s.Key != expr.SocketKeyCgroupv2 {
					continue
				}
				cmp, isCmp := rule[i+1].(*expr.Cmp)
				switch {
				case s.Level == 5 && isCmp && string(cmp.Data) == fCgroup(1):
				case s.Level == 6 && !isCmp:
				default:
					t.Errorf("%s: %s", c.Name, rule.Text())
				}
			}
		}
	}
}

func TestElementsShared(t *testing.T) {
	tab := &Table{}
	p := lease.Policy{Egress: lease.Rules, Rules: []lease.Rule{{To: netip.MustParsePrefix("10.0.0.0/8"), First: 80, Last: 80, Protocol: lease.TCP}},
		Ingress: lease.FromPorts, IngressPorts: []uint16{1, 2, 3, 9}}
	if n := tab.Elements([]lease.Verdict{{Leaf: 1, Policy: p}, {Leaf: 2, Policy: p}}); n != 1+2*4 {
		t.Errorf("%d elements, want one rule and four ingress elements for each box", n)
	}
}

// Every kind of expression that the table has is tried by a feature, so that a kernel that lacks one is
// named and not only refused.
func TestFeaturesCoverTheTable(t *testing.T) {
	b := builder{Config{Boxes: 1, Level: 1, Answerer: 1, BoxView: 2, Group: 3, Flows: 4, Marks: DefaultMarks()}}
	kinds := func(rules []Rule) map[string]bool {
		out := map[string]bool{}
		var add func(e expr.Any)
		add = func(e expr.Any) {
			out[fmt.Sprintf("%T", e)] = true
			if d, ok := e.(*expr.Dynset); ok {
				for _, in := range d.Exprs {
					add(in)
				}
			}
		}
		for _, r := range rules {
			for _, e := range r {
				add(e)
			}
		}
		return out
	}
	var tried []Rule
	for _, f := range b.features() {
		tried = append(tried, f.rules...)
		if f.lacks == "" || f.serves == "" {
			t.Errorf("%+v says nothing", f)
		}
	}
	has := kinds(tried)
	for _, c := range ruleset(b.Config, nil).Chains {
		for kind := range kinds(c.Rules) {
			if !has[kind] && kind != "*expr.Counter" && kind != "*expr.Payload" { // parts of nf_tables itself
				t.Errorf("chain %s: %s is tried by no feature", c.Name, kind)
			}
		}
	}
}
