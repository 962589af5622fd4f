package egress

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
	"github.com/gominimal/minhost/verify/e2e/rig"
	"github.com/gominimal/minhost/verify/netlab"
)

// count has the agent ask the helper to be counted, and says where it was put.
func count() string {
	ctx, cancel := context.WithTimeout(context.Background(), netlab.Patience(20*time.Second))
	defer cancel()
	c, err := client.Dial(ctx, rig.Socket)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	out, err := c.Count(ctx)
	if err != nil {
		return api.ErrorName(err)
	}
	return out.Group
}

// TestRunnerCounted: a runner that asks is counted under its account, judged by nothing, whoever the helper is by
// then, and starts boxes as before; a box cannot ask, nor put itself there; an undo lets the runner live.
func TestRunnerCounted(t *testing.T) {
	h := newHost(t)
	o := h.outside()
	o.do(func() { serve("udp", far+":8300") })
	runner := netlab.Start(t, netlab.Spawn{Leaf: netlab.NoLeaf, UID: rig.User}, "agent")
	runner.Line()
	mine := &box{h, runner, api.PlanOut{Name: "none: the runner"}}
	place := fmt.Sprintf("%s/node/%d", rig.Tree, rig.User)
	if got := ask[string](mine, order{Op: "count"}); got != place {
		t.Fatalf("put into %s", got)
	}
	in := func(pid int, want string) {
		t.Helper()
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid)); err != nil || !strings.Contains(string(b), want+"\n") {
			t.Errorf("process %d is in %s, %v; want %s", pid, b, err, want)
		}
	}
	in(runner.PID(), strings.TrimPrefix(place, rig.Mount))
	sent := func() int {
		t.Helper()
		s, err := h.dial().Status(h.ctx())
		h.must(err)
		for _, x := range s.Traffic {
			if x.Plane == "runner" && x.UID == rig.User {
				return x.SentPackets
			}
		}
		t.Fatalf("no line of the runner: %+v", s.Traffic)
		return 0
	}
	before := sent()
	for range 3 {
		mine.reaches("udp", far+":8300", true)
	}
	if got := sent(); got != before+3 {
		t.Errorf("sent %d, before %d", got, before)
	}
	if out := rig.Must(t, "status").Stdout; !strings.Contains(out, fmt.Sprintf("runner, uid %d", rig.User)) {
		t.Errorf("status says %s", out)
	}
	b := h.box("counted", api.Policy{Egress: api.EgressDeny})
	if got := ask[string](b, order{Op: "count"}); got != "dev.minimal.Host.NotAllowed" {
		t.Errorf("a box asked: %s", got)
	}
	b.reaches("udp", far+":8300", false)
	kill := func() {
		t.Helper()
		st, err := h.dial().Status(h.ctx())
		h.must(err)
		h.must(syscall.Kill(st.PID, syscall.SIGKILL))
		rig.Eventually(t, 20*time.Second, "another helper answers", func() bool {
			now, err := h.dial().Status(h.ctx())
			return err == nil && now.PID != st.PID
		})
	}
	before = sent()
	kill()
	mine.reaches("udp", far+":8300", true)
	if got := sent(); got != before+1 {
		t.Errorf("behind another helper %d, before %d", got, before)
	}
	b.end()
	rig.Undo(t)
	in(runner.PID(), "/")
	if _, err := os.Stat(rig.Tree); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left of the tree: %v", err)
	}
	mine.reaches("udp", far+":8300", true)
}
