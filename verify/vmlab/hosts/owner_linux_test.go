package hosts

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/vmlab"
)

// TestWithoutBelt is a host whose kernel has no cgroup BPF: the table belongs to a socket that systemd itself made and
// holds, whether a helper runs or not. Flushes and deletions by root do nothing, at every moment, also while the
// helper's units are stopped.
func TestWithoutBelt(t *testing.T) {
	for _, suite := range []string{"bookworm", "trixie"} {
		t.Run(suite, func(t *testing.T) {
			h := newHost(t, suite)
			h.Write("/etc/minhost/test-without-belt", "", 0o644)
			h.boot()
			before := h.Snapshot()
			h.Must(vmlab.Program(vmlab.Faulty), "finalize-install", "--yes", "--operator", vmlab.Runner)
			allow := h.startLive("allow", []string{"--allow", vmlab.Outside + "/32:8080"}, []string{"open=tcp:" + h.open.Addr(), "shut=tcp:" + h.shut.Addr()})
			deny := h.startLive("deny", []string{"--egress", "deny"}, []string{"shut=tcp:" + h.shut.Addr()})
			helper := h.mainPID("minhost-helper.service")
			for _, line := range []string{
				"true",
				"systemctl restart minhost-helper.service",
				"kill -9 $(systemctl show --value -p MainPID minhost-helper.service)",
				"systemctl daemon-reexec",
				"systemctl daemon-reload",
				"systemctl stop minhost-helper.service",
				"systemctl stop minhost-helper.socket minhost-helper.service",
				"! systemctl stop minhost-table.socket",
				"kill -9 $(systemctl show --value -p MainPID minhost-tree.service)",
				"kill -9 $(systemctl show --value -p MainPID minhost-tree.service) $(systemctl show --value -p MainPID minhost-helper.service)",
				"systemctl isolate multi-user.target",
			} {
				h.Sh(line)
				// The service manager alone may have the socket now.
				h.Sh("for i in 1 2 3 4 5 6 7 8 9 10; do nft flush ruleset; ! nft delete table inet minhost 2>/dev/null; done")
				h.Sh("systemctl start minhost-helper.socket minhost-helper.service")
				h.eventually(20*time.Second, "verify after: "+line, func() bool { return h.Try(installed, "verify").Status == 0 })
				h.Sh("nft flush ruleset; ! nft delete table inet minhost 2>/dev/null")
			}
			if now := h.mainPID("minhost-helper.service"); now == helper || now == "0" {
				t.Errorf("the helper was %s and is %s: it never restarted", helper, now)
			}
			h.eventually(10*time.Second, "the allowed box reaches what it may", func() bool { return allow.outcome("open") == "ok" })
			if n := h.shut.Hits(); n != 0 || allow.everOK("shut") || deny.everOK("shut") || allow.Ended() || deny.Ended() {
				t.Errorf("%d connections of boxes arrived where none may\n%s\n%s", n, allow.Stdout(), deny.Stdout())
			}
			if r := h.Must(installed, "verify"); !strings.Contains(r.Stdout, "belongs to a socket of the service manager's own") || !strings.Contains(r.Stdout, "minhost-table.socket fails") {
				t.Errorf("verify does not tell: %s", r.Stdout)
			}
			for _, b := range []*liveBox{allow, deny} {
				if err := b.Stop(syscall.SIGTERM); err != nil {
					t.Error(err)
				}
			}
			h.ownedFromBoot()
			h.Must(installed, "finalize-install", "--undo", "--yes", "--force")
			h.Same(before)
		})
	}
}

// ownedFromBoot wants the first table of a boot to be nobody's to flush, also when no helper ever starts, and a process that
// somebody put into the boxes to be refused.
func (h *host) ownedFromBoot() {
	h.t.Helper()
	h.Sh("systemctl disable minhost-helper.socket minhost-helper.service")
	h.Reboot()
	if pid := h.mainPID("minhost-helper.service"); pid != "0" {
		h.t.Errorf("a helper runs: %s", pid)
	}
	h.Sh("nft flush ruleset; ! nft delete table inet minhost; nft list table inet minhost >/dev/null")
	before := h.shut.Hits()
	dial := "exec 3<>/dev/tcp/" + strings.Replace(h.shut.Addr(), ":", "/", 1)
	h.Must("/bin/bash", "-c", dial)
	if r := h.Try("/bin/bash", "-c", "echo $$ >$(find /sys/fs/cgroup -path '*minhost-tree.service/boxes/cgroup.procs') && "+dial); r.Status == 0 || !strings.Contains(r.Stderr, "refused") {
		h.t.Errorf("a process in boxes: %v", r)
	}
	if n := h.shut.Hits() - before; n != 1 {
		h.t.Errorf("%d connections, want the host's", n)
	}
	h.Sh("systemctl enable --now minhost-helper.socket minhost-helper.service")
	h.eventually(20*time.Second, "verify after a boot", func() bool { return h.Try(installed, "verify").Status == 0 })
	h.Sh("nft flush ruleset; ! nft delete table inet minhost")
}

func (h *host) mainPID(unit string) string {
	h.t.Helper()
	return strings.TrimSpace(h.Must("systemctl", "show", "--value", "-p", "MainPID", unit).Stdout)
}
