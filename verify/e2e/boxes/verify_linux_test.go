package boxes

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/gominimal/minhost/verify"
)

// TestVerifyWithBoxes: boxes that live change no row of verify, root's or anybody's: their addresses, which root may
// not bind, are no fault of the host.
func TestVerifyWithBoxes(t *testing.T) {
	h := newHost(t)
	rows := func(uid uint32) (states map[string]verify.State, about string) {
		t.Helper()
		r := h.minhost(uid, "verify", "--json")
		var report verify.Report
		if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
			t.Fatalf("uid %d: %v: %+v", uid, err, r)
		}
		states = map[string]verify.State{}
		for _, row := range report.Rows {
			states[row.Name] = row.State
			if row.Name == "range" {
				about = row.Detail
			}
		}
		return states, about
	}
	for _, uid := range []uint32{0, operatorUID} {
		before, _ := rows(uid)
		web, db := h.box("web", denyPolicy()), h.box("db", openPolicy())
		after, about := rows(uid)
		if !maps.Equal(before, after) || after["range"] != verify.OK || after["belt"] != verify.OK || !strings.Contains(about, "2 of") {
			t.Errorf("uid %d: %v, with two boxes %v (%s)", uid, before, after, about)
		}
		web.end()
		db.end()
	}
}
