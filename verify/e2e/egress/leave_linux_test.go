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
	events := make(chan api.Event, 1000)
	watching := h.dial()
	go watching.Watch(h.ctx(), api.WatchIn{}, func(e api.Event) error { events <- e; return nil })
	rig.Eventually(t, 20*time.Second, "the watch stands", func() bool {
		b.update(api.Policy{Egress: api.EgressDeny})
		return len(events) > 0
	})
	start := time.Now()
	h.must(os.WriteFile(rig.Mount+"/cgroup.procs", []byte(fmt.Sprint(joined.PID())), 0o644))
	rig.Eventually(t, 20*time.Second, "the process outside ends", func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", joined.PID()))
		return err != nil || strings.Contains(string(b), ") Z ")
	})
	took := time.Since(start)
	t.Logf("killed after %v", took)
	late := time.After(20 * time.Second)
	for told := false; !told; {
		select {
		case e := <-events:
			if told = e.Kind == api.EventKindEscaped; told && (e.Box != "leaver" || !strings.Contains(e.Text, fmt.Sprintf("process %d left its box", joined.PID()))) {
				t.Errorf("event: %+v", e)
			}
		case <-late:
			t.Fatal("no event")
		}
	}
	b.reaches("tcp", "127.0.0.1:1", false) // it lives
}
