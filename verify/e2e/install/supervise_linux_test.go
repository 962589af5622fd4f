package install

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

var allRoles = []string{"helper", "resolverd", "supervise"}

// comesBack kills a supervised role. Another process is in its place within two seconds by the
// kernel's own clock, however busy the machine is, and then does its work.
func comesBack(t *testing.T, role string) {
	t.Helper()
	old := rig.Only(t, role)
	killed := rig.Uptime(t)
	old.Kill()
	rig.Eventually(t, 20*time.Second, role+" comes back and the host is ready", func() bool {
		return slices.Equal(rig.Roles(t), allRoles) && rig.Only(t, role).PID != old.PID && rig.Run(t, "verify").Status == 0
	})
	if took := rig.Only(t, role).Started - killed; took > 2*time.Second {
		t.Errorf("%s came back after %v", role, took)
	}
}

// TestSupervised: helper and answerer come back by themselves, again and again; boxes live on.
func TestSupervised(t *testing.T) {
	rig.Bare(t)
	rig.Install(t)
	for range 2 {
		comesBack(t, "helper")
		comesBack(t, "resolverd")
	}
	if p := rig.Only(t, "resolverd"); p.UID == 0 {
		t.Error("the answerer is root")
	}
}

// TestSupervisorKilled: helper and answerer live on without it, apply brings it back, undo ends a pair
// that nobody supervises.
func TestSupervisorKilled(t *testing.T) {
	before := rig.Bare(t)
	rig.Install(t)
	helper, answerer := rig.Only(t, "helper"), rig.Only(t, "resolverd")
	rig.Only(t, "supervise").Kill()
	rig.Eventually(t, 2*time.Second, "the supervisor is gone", func() bool { return len(rig.Processes(t)) == 2 })
	if rig.Only(t, "helper").PID != helper.PID || rig.Only(t, "resolverd").PID != answerer.PID {
		t.Error("helper and answerer did not live on")
	}
	if !may(t, rig.Cmd{UID: rig.User}) {
		t.Error("no box starts without a supervisor")
	}
	if r := rig.Run(t, "verify"); r.Status != 1 || !strings.Contains(r.Stdout, "no supervisor runs") {
		t.Errorf("verify does not see it: %v", r)
	}
	box := rig.Box(t, "web")
	if r := rig.Must(t, "apply"); !strings.Contains(r.Stdout, "done: start helper and answerer") {
		t.Error(r)
	}
	if !slices.Equal(rig.Roles(t), append([]string{"run"}, allRoles...)) && box.Ended() {
		t.Errorf("running: %v", rig.Processes(t))
	}
	rig.Must(t, "verify")
	if box.Ended() {
		t.Errorf("the box did not outlive the helper: %s", box.Stderr())
	}
	box.Signal(15)
	box.Wait()

	rig.Only(t, "supervise").Kill()
	rig.Undo(t)
	before.Same(t)
}

// TestOneSupervisor: a second one refuses and says who is there; the first goes on.
func TestOneSupervisor(t *testing.T) {
	rig.Bare(t)
	rig.Cmd{UID: rig.User}.Run(t, "supervise").Want(t, 1)
	rig.Install(t)
	first := rig.Only(t, "supervise")
	rig.Cmd{Timeout: 10 * time.Second}.Run(t, "supervise").Want(t, 1, "holds it already", "kill ")
	rig.Cmd{UID: rig.User}.Run(t, "supervise").Want(t, 1)
	rig.Run(t, "helper").Want(t, 1, "service manager")
	if rig.Only(t, "supervise").PID != first.PID {
		t.Error("the first supervisor is gone")
	}
	rig.Must(t, "verify")
}
