package hosts

import (
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/vmlab"
)

// TestBoot: what the ruleset of an admin, early boxes and a restart of userspace do to a boot.
func TestBoot(t *testing.T) {
	for _, c := range []struct {
		name string
		// nftables is the [Service] section of a drop-in of nftables.service, which is enabled.
		nftables string
	}{
		{"nftables.service", ""},
		{"slow nftables.service", "ExecStartPre=/bin/sleep 2"},
		{"failing nftables.service", "ExecStart=\nExecStart=/bin/false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t, "bookworm")
			h.Link("/etc/systemd/system/sysinit.target.wants/nftables.service", "/lib/systemd/system/nftables.service")
			h.Write("/etc/systemd/system/nftables.service.d/lab.conf", "[Service]\n"+c.nftables+"\n", 0o644)
			// A box that may reach nothing, started as early as a unit can be: it tries from then on.
			h.Write("/etc/systemd/system/early.service", earlyBox(h), 0o644)
			h.Link("/etc/systemd/system/sysinit.target.wants/early.service", "/etc/systemd/system/early.service")
			h.boot()
			h.install()
			h.Reboot()
			h.eventually(15*time.Second, "names of the outside world", h.outerNameResolves)
			// Not asked for by unit: journald knows a box's process by its cgroup, the tree's.
			if !within(10*time.Second, func() bool {
				return strings.Contains(h.Try("journalctl", "-b", "-o", "cat").Stdout, " shut ")
			}) {
				t.Fatal(h.Try("/bin/sh", "-c", "systemctl status early.service minhost-helper.service"))
			}
			time.Sleep(500 * time.Millisecond)
			h.Must(installed, "verify")
			if n := h.shut.Hits(); n != 0 {
				t.Errorf("the early box got out %d times", n)
			}
			if r := h.Must("journalctl", "-b", "-o", "cat"); strings.Contains(r.Stdout, "ordering cycle") {
				t.Error("an ordering cycle")
			}
			h.use(true)
		})
	}
}

func earlyBox(h *host) string {
	return "[Unit]\nDefaultDependencies=no\nAfter=minhost-helper.service\nConditionPathExists=" + installed + "\n" +
		"[Service]\nUser=" + vmlab.Runner + "\nExecStart=" + installed + " run --name early --egress deny -- " +
		vmlab.Program(vmlab.Probe) + " shut=tcp:" + h.shut.Addr() + "\n"
}

// TestWatchdog: a helper or answerer that hangs is started again, one that works is not; boxes stay.
func TestWatchdog(t *testing.T) {
	h := newHost(t, "bookworm")
	units := []string{"minhost-helper.service", "minhost-resolverd.service"}
	for _, unit := range units {
		h.Write("/etc/systemd/system/"+unit+".d/lab.conf", "[Service]\nWatchdogSec=2s\n", 0o644)
	}
	h.boot()
	h.install()
	box := h.Start(vmlab.Runner, installed, "run", "--name", "live", "--egress", "deny", "--", "/bin/sh", "-c", "echo up; exec sleep 60")
	box.Await("up")
	restarts := func(unit string) string {
		return strings.TrimSpace(h.Must("systemctl", "show", "--value", "-p", "NRestarts", unit).Stdout)
	}
	time.Sleep(4 * time.Second)
	for _, unit := range units {
		if n := restarts(unit); n != "0" {
			t.Fatalf("%s works and was started again %s times", unit, n)
		}
	}
	for _, unit := range units {
		h.Sh("kill -STOP $(systemctl show --value -p MainPID " + unit + ")")
		h.eventually(15*time.Second, unit+" hangs and is started again", func() bool { return restarts(unit) == "1" })
	}
	h.eventually(10*time.Second, "verify", func() bool { return h.Try(installed, "verify").Status == 0 })
	if box.Ended() || !strings.Contains(h.Try(installed, "ls").Stdout, "live") {
		t.Errorf("the box is gone: %s", box.Stderr())
	}
}

// TestSoftReboot: userspace starts again, the kernel with its table, link and boot id stays (254 and
// later).
func TestSoftReboot(t *testing.T) {
	h := newHost(t, "trixie")
	h.boot()
	h.install()
	h.Start(vmlab.Runner, installed, "run", "--name", "old", "--egress", "deny", "--", "/bin/sh", "-c", "echo up; exec sleep 60").Await("up")
	before := h.Must("systemctl", "show", "--value", "-p", "UserspaceTimestampMonotonic").Stdout
	h.Must("systemctl", "soft-reboot", "--no-block")
	h.eventually(30*time.Second, "userspace starts again", func() bool {
		r := h.TryFor(3*time.Second, "systemctl", "show", "--value", "-p", "UserspaceTimestampMonotonic")
		return r.Status == 0 && r.Stdout != before
	})
	h.WaitBoot()
	h.eventually(15*time.Second, "names of the outside world", h.outerNameResolves)
	h.verify()
	h.use(true)
}
