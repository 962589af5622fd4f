package egress

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/verify/e2e/rig"
	"github.com/gominimal/minhost/verify/netlab"
)

// TestLeaving: a process that somebody moved out of its leaf is found within a second, killed, and told;
// one that is in the leaf goes on.
func TestLeaving(t *testing.T) {
	h := newHost(t)
	b := h.box("leaver", api.Policy{Egress: api.EgressDeny})
	joined := netlab.Start(t, netlab.Spawn{Leaf: netlab.NoLeaf}, "netlab-sleep")
	joined.Line()
	_, _, err := h.dial().Join(h.ctx(), api.JoinIn{Lease: b.plan.Lease, Secret: b.plan.Secret, Kind: api.JoinKindTask, PID: joined.PID()}, nil)
	h.must(err)
	events := make(chan api.Event, 10)
	watching := h.dial()
	go watching.Watch(h.ctx(), api.WatchIn{}, func(e api.Event) error { events <- e; return nil })
	time.Sleep(100 * time.Millisecond) // until the watch stands
	start := time.Now()
	h.must(os.WriteFile(rig.Mount+"/cgroup.procs", []byte(fmt.Sprint(joined.PID())), 0o644))
	rig.Eventually(t, 5*time.Second, "the process outside ends", func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", joined.PID()))
		return err != nil || strings.Contains(string(b), ") Z ")
	})
	took := time.Since(start)
	t.Logf("killed after %v", took)
	select {
	case e := <-events:
		if e.Kind != api.EventKindEscaped || e.Box != "leaver" || !strings.Contains(e.Text, fmt.Sprintf("process %d left its box", joined.PID())) {
			t.Errorf("event: %+v", e)
		}
	case <-time.After(5 * time.Second):
		t.Error("no event")
	}
	b.reaches("tcp", "127.0.0.1:1", false) // it lives
}
