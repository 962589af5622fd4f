package install

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/linux"
	"github.com/gominimal/minhost/verify"
	"github.com/gominimal/minhost/verify/e2e/rig"
	"github.com/gominimal/minhost/verify/netlab"
)

// tries dials without a pause and says what got through, and "tried" at the end.
const tries = `n=0; echo up; while [ ! -e /run/e2e-enough ]; do
	(exec 3<>/dev/tcp/127.0.0.1/8098) 2>/dev/null && echo reached tcp; n=$((n+1))
done; echo tried $n; exec sleep 300`

// TestWithoutBelt is a kernel without cgroup BPF: the table belongs to a socket that outlives each helper. Flushes,
// deletions and deaths let nothing through, verify says what protects and what does not, and undo takes all back.
func TestWithoutBelt(t *testing.T) {
	const missing = "/etc/minhost/test-without-belt"
	netlab.Echo(t, "tcp", "127.0.0.1:8098", 0)
	before := rig.Bare(t)
	if err := os.MkdirAll("/etc/minhost", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(missing, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll("/etc/minhost"); os.Remove("/run/e2e-enough") })
	root := rig.Cmd{Path: rig.Binary(faulty)}
	root.Run(t, "finalize-install", "--yes", "--operator", rig.UserName).Want(t, 0)
	if out, err := exec.Command("bpftool", "cgroup", "show", rig.Boxes).CombinedOutput(); err == nil && strings.Contains(string(out), "minhost_egress") {
		t.Fatalf("there is a belt: %s", out)
	}
	deny := rig.Cmd{UID: rig.User, Timeout: 5 * time.Minute}.Start(t, "run", "--name", "d", "--egress", "deny", "--no-strict", "--", "/bin/bash", "-c", tries)
	deny.Await("up")
	listed := func() bool {
		return rig.As(t, rig.User, "run", "--egress", "deny", "--allow", "127.0.0.1/32:8098/tcp", "--no-strict", "--", "/bin/bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8098").Status == 0
	}
	flush := func() {
		for range 5 {
			_ = exec.Command("/usr/sbin/nft", "flush", "ruleset").Run()
			if exec.Command("/usr/sbin/nft", "delete", "table", "inet", "minhost").Run() == nil {
				t.Error("somebody else deleted the table")
			}
		}
	}
	flush()
	if !listed() {
		t.Error("a box does not reach what its rules admit")
	}
	for range 3 {
		helper := rig.Only(t, "helper")
		helper.Kill()
		flush() // the supervisor has the socket
		rig.Eventually(t, 20*time.Second, "another helper", func() bool {
			return rig.Run(t, "status").Status == 0 && rig.Only(t, "helper").PID != helper.PID
		})
		flush()
	}
	supervisor := rig.Only(t, "supervise")
	_ = syscall.Kill(supervisor.PID, syscall.SIGSTOP)
	flush()
	_ = syscall.Kill(supervisor.PID, syscall.SIGCONT)
	if !listed() {
		t.Error("afterwards a box does not reach what its rules admit")
	}
	protection(t)
	if err := os.WriteFile("/run/e2e-enough", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	deny.Await("tried")
	if out := deny.Stdout(); strings.Contains(out, "reached") || strings.Contains(out, "tried 0\n") {
		t.Errorf("the deny-all box: %s", out)
	}
	keptTable(t, root)
	root.Run(t, append(undo, "--force")...).Want(t, 0)
	os.RemoveAll("/etc/minhost")
	os.Remove("/run/e2e-enough")
	before.Same(t)
}

// keptTable changes what the table should be while no helper lives: whose it is, and what to do, is said.
func keptTable(t *testing.T, root rig.Cmd) {
	t.Helper()
	supervisor := rig.Only(t, "supervise")
	_ = syscall.Kill(supervisor.PID, syscall.SIGSTOP) // it has the socket
	defer func() { _ = syscall.Kill(supervisor.PID, syscall.SIGCONT) }()
	rig.Only(t, "helper").Kill()
	config := linux.DefaultLayout().Config
	if err := os.WriteFile(config, []byte(`{"planes": {"cohort": {"mark": "0x00800000"}}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	root.Run(t, "apply", "--only", "table").Want(t, 1, "table inet minhost belongs to a helper that does not run", "minhost-helper")
	os.Remove(config)
}

// protection requires that verify names it.
func protection(t *testing.T) {
	t.Helper()
	var report verify.Report
	r := rig.Run(t, "verify", "--json")
	if err := json.Unmarshal([]byte(r.Stdout), &report); err != nil {
		t.Fatalf("%v: %v", err, r)
	}
	found := false
	for _, row := range report.Rows {
		if row.Name == "protection against a flushed firewall" {
			found = true
			if row.State != verify.Warning || !strings.Contains(row.Detail, "belongs to the helper's socket") || !strings.Contains(row.Loses, "before the helper starts") {
				t.Errorf("%+v", row)
			}
		}
	}
	if !found {
		t.Errorf("verify does not name the protection: %v", r)
	}
}
