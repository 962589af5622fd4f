package hosts

import (
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/vmlab"
)

// TestWithoutBelt is a host whose kernel has no cgroup BPF: the table belongs to a socket of the helper's, which
// systemd's descriptor store keeps while no helper runs. Flushes and deletions by root do nothing, at every moment;
// only "systemctl stop" of the unit empties the store, which verify says.
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
			h.kept()
			helper := h.mainPID("minhost-helper.service")
			for _, line := range []string{
				"true",
				"systemctl restart minhost-helper.service",
				"kill -9 $(systemctl show --value -p MainPID minhost-helper.service)",
				"systemctl daemon-reexec",
			} {
				h.Sh(line)
				// The service manager alone may have the socket now.
				h.Sh("for i in 1 2 3 4 5 6 7 8 9 10; do nft flush ruleset; ! nft delete table inet minhost 2>/dev/null; done")
				h.eventually(20*time.Second, "verify after: "+line, func() bool { return h.Try(installed, "verify").Status == 0 })
				h.Sh("nft flush ruleset; ! nft delete table inet minhost 2>/dev/null")
				h.kept()
			}
			if now := h.mainPID("minhost-helper.service"); now == helper || now == "0" {
				t.Errorf("the helper was %s and is %s: it never restarted", helper, now)
			}
			h.eventually(10*time.Second, "the allowed box reaches what it may", func() bool { return allow.outcome("open") == "ok" })
			if n := h.shut.Hits(); n != 0 || allow.everOK("shut") || deny.everOK("shut") || allow.Ended() || deny.Ended() {
				t.Errorf("%d connections of boxes arrived where none may\n%s\n%s", n, allow.Stdout(), deny.Stdout())
			}
			if r := h.Must(installed, "verify"); !strings.Contains(r.Stdout, "which the service manager keeps") || !strings.Contains(r.Stdout, "is stopped") {
				t.Errorf("verify does not tell: %s", r.Stdout)
			}
			h.Must(installed, "finalize-install", "--undo", "--yes", "--force")
			h.Same(before)
		})
	}
}

// kept wants systemd to keep exactly one descriptor of the helper's.
func (h *host) kept() {
	h.t.Helper()
	if n := strings.TrimSpace(h.Must("systemctl", "show", "--value", "-p", "NFileDescriptorStore", "minhost-helper.service").Stdout); n != "1" {
		h.t.Errorf("systemd keeps %s descriptors of the helper's", n)
	}
}

func (h *host) mainPID(unit string) string {
	h.t.Helper()
	return strings.TrimSpace(h.Must("systemctl", "show", "--value", "-p", "MainPID", unit).Stdout)
}
