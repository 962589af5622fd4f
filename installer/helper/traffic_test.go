package helper

import (
	"testing"

	"github.com/gominimal/minhost/installer/api"
)

// TestTraffic: everybody sees the host and all boxes together, and the own boxes one by one; root sees all.
func TestTraffic(t *testing.T) {
	r := newRig(t)
	w, other, root := r.dial(operatorUID, 10), r.dial(otherUID, 11), r.dial(0, 12)
	mine := r.box(w, api.PlanIn{Name: "web", Policy: api.Policy{Egress: api.EgressDeny}}, 20)
	for _, c := range []struct {
		who  *wire
		want []string
	}{{w, []string{"cohort", "node", mine.Lease}}, {other, []string{"cohort", "node"}}, {root, []string{"cohort", "node", mine.Lease}}} {
		var s api.StatusOut
		if err := c.who.call("Status", api.StatusIn{}, &s); err != nil {
			t.Fatal(err)
		}
		if len(s.Traffic) != len(c.want) {
			t.Fatalf("traffic %+v, want of %v", s.Traffic, c.want)
		}
		for i, want := range c.want {
			got := s.Traffic[i].Plane
			if got == "box" {
				got = s.Traffic[i].Lease
			}
			if got != want {
				t.Errorf("line %d is of %s, want %s", i, got, want)
			}
		}
		var l api.ListOut
		if err := c.who.call("List", api.ListIn{}, &l); err != nil {
			t.Fatal(err)
		}
		got := l.Leases[0].Traffic
		if sees := len(c.want) == 3; (got != nil) != sees || sees && got.SentBytes != l.Leases[0].Number {
			t.Errorf("listed with traffic %+v", got)
		}
	}
}
