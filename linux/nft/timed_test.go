package nft

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gominimal/minhost/installer/lease"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// At every time, the elements that have not ended admit exactly what the rules that have not ended say; and
// no packet is in two elements, ended or not: the kernel keeps an ended one for a while.
func TestTimedCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := rapid.SliceOfN(drawRule, 0, 10).Draw(t, "rules")
		for i := range rules {
			if n := rapid.IntRange(0, 3).Draw(t, "minutes"); n > 0 {
				rules[i].Until = noon.Add(time.Duration(n) * time.Minute)
			}
		}
		policy := lease.Policy{Egress: lease.Rules, Rules: rules}
		elements := compile(policy).elements(7)
		at := noon.Add(time.Duration(rapid.IntRange(0, 4).Draw(t, "at")) * time.Minute)
		left, _ := policy.At(at)
		var live []setElement
		for _, e := range elements {
			if !e.over(at) {
				live = append(live, e)
			}
		}
		for _, p := range rapid.SliceOfN(drawPacket, 20, 40).Draw(t, "packets") {
			if got, want := holding(live, p), admits(left.Rules, p); got > 1 || (got == 1) != want {
				t.Fatalf("%v at %v is in %d elements, want %t", p, at, got, want)
			}
			if holding(elements, p) > 1 {
				t.Fatalf("%v is in %d elements", p, holding(elements, p))
			}
		}
	})
}

// Ends make other policies; what flows are judged by ends with the first rule.
func TestTimedElements(t *testing.T) {
	p := lease.Policy{Egress: lease.Rules, Rules: []lease.Rule{rapidRule("10.0.0.0/8"), rapidRule("192.0.2.0/24")}}
	never := compile(p).key()
	p.Rules[1].Until = noon
	if compile(p).key() == never {
		t.Error("a policy that ends shares the elements of one that does not")
	}
	for _, e := range leafElements(DefaultMarks(), lease.Verdict{Leaf: 5, Number: 1, Policy: p}, 1) {
		if want := map[bool]int64{true: noon.UnixMilli()}[e.set == setJudged]; e.Until != want {
			t.Errorf("%s ends at %d, want %d", e.set, e.Until, want)
		}
	}
	e := Element{Until: noon.UnixMilli() + 5}
	if got := readComment(e.comment()); got != e.Until || readComment("until tomorrow") != 0 || readComment("2026") != 0 {
		t.Errorf("%q is read as %d", e.comment(), got)
	}
}

func rapidRule(to string) lease.Rule {
	r, err := lease.ParseRule(to, "", lease.TCP)
	if err != nil {
		panic(err)
	}
	return r
}
