package crowd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
	"github.com/gominimal/minhost/verify/e2e/rig"
)

// racy is the program with the race detector; what lives and who calls at once.
const (
	racy    = "minhost-race"
	live    = 250
	callers = 64
)

// slowest bounds a call that has nothing to do with what others do. The race detector and a busy machine are
// slow; a call that waits for an attach of another box to be let go would take for ever.
const slowest = 30 * time.Second

func TestMain(m *testing.M) {
	if missing := rig.RaceMissing(); missing != "" {
		fmt.Printf("SKIP race: %s\n", missing)
		os.Exit(0)
	}
	os.Exit(rig.Main(m, []rig.Build{{Name: racy, Version: "e2e", Race: true}}))
}

// TestCrowd: 250 boxes live while 64 callers make and end others; no race, no call that waits for another's, and
// the counters fit.
func TestCrowd(t *testing.T) {
	rig.Bare(t)
	rig.Cmd{Path: rig.Binary(racy)}.Run(t, "finalize-install", "--yes", "--operator", rig.UserName).Want(t, 0)
	all := make([]caller, callers)
	plans := make([][]api.PlanOut, callers)
	var children []*exec.Cmd
	for i := range all {
		c, err := client.Dial(t.Context(), rig.Socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		// Its first box comes before the next caller does: connections that hold no lease are fewer.
		all[i].c = c
		plan, err := all[i].attach(fmt.Sprintf("live-%d", i))
		if err != nil {
			t.Fatal(err)
		}
		plans[i], children = []api.PlanOut{plan}, append(children, all[i].child)
	}
	each := func(what string, f func(i int, c *caller) error) {
		t.Helper()
		var work sync.WaitGroup
		for i := range all {
			work.Go(func() {
				if err := f(i, &all[i]); err != nil {
					t.Errorf("%s: caller %d: %v", what, i, err)
				}
			})
		}
		work.Wait()
	}
	var mu sync.Mutex
	each("fill", func(i int, c *caller) error {
		for n := i + callers; n < live; n += callers {
			plan, err := c.attach(fmt.Sprintf("live-%d", n))
			mu.Lock()
			children = append(children, c.child)
			mu.Unlock()
			if err != nil {
				return err
			}
			plans[i] = append(plans[i], plan)
		}
		return nil
	})
	each("lives", func(i int, c *caller) error {
		return errors.Join(c.life(""), c.life(""))
	})
	each("empty", func(i int, c *caller) error {
		for _, p := range plans[i] {
			if err := c.timed(func(ctx context.Context) error {
				_, err := c.c.Teardown(ctx, api.TeardownIn{Lease: p.Lease, Secret: p.Secret, Kill: true})
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
	for _, c := range children {
		c.Process.Kill()
		c.Wait()
	}
	var took []time.Duration
	for _, c := range all {
		took = append(took, c.took...)
	}
	slices.Sort(took)
	t.Logf("%d calls, median %v, p99 %v, longest %v", len(took), took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
	fits(t, all[0].c)
}

// fits requires that the counters fit, that no leaf is left, and that the race detector said nothing.
func fits(t *testing.T, c *client.Client) {
	t.Helper()
	s, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Plans != live+2*callers || s.Plans != s.Attaches+s.Abandons || s.Attaches != s.Teardowns || s.Leases != 0 {
		t.Errorf("%d plans, %d attaches, %d abandons, %d teardowns, %d leases", s.Plans, s.Attaches, s.Abandons, s.Teardowns, s.Leases)
	}
	if left := rig.Leaves(t); len(left) > 0 {
		t.Errorf("leaves %v", left)
	}
	log, err := os.ReadFile(rig.Log)
	if err != nil {
		t.Fatal(err)
	}
	if at := bytes.Index(log, []byte("DATA RACE")); at >= 0 {
		t.Errorf("%s", log[at:min(len(log), at+4000)])
	}
	if !bytes.Contains(log, []byte("msg=attached")) {
		t.Error("the log is not the helper's")
	}
}

// TestRaceBuilt: the detector is in the program that was tested.
func TestRaceBuilt(t *testing.T) {
	for name, want := range map[string]bool{racy: true, rig.Standard: false} {
		b, err := os.ReadFile(rig.Binary(name))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte("WARNING: DATA RACE")) != want {
			t.Errorf("%s: race detector: %v", name, !want)
		}
	}
}
