package cells

import (
	"strings"
	"testing"

	"github.com/gominimal/minhost/verify/vmlab"
)

// newer is a suite with systemd 258 or later, whose resolved reads delegate files. It is a moving one: what is
// in it on the day is what is tried, so it is no part of CI.
const newer = "forky"

// namesAre wants the step names in that state, the zone's names found or not, and those of the outside world always.
func (h *host) namesAre(state, detail string, found, link bool) {
	h.t.Helper()
	h.zoneIs(state, detail, found, link)
	if !h.outerName() {
		h.t.Error("a name of the outside world does not resolve")
	}
}

// zoneIs does not ask for others: the outside world of these tests speaks no TLS and signs nothing.
func (h *host) zoneIs(state, detail string, found, link bool) {
	h.t.Helper()
	ok := func() bool {
		r := h.Try(installed, "verify")
		for line := range strings.Lines(r.Stdout) {
			if f := strings.Fields(line); len(f) > 1 && f[1] == "names" {
				return f[0] == state && strings.Contains(line, detail)
			}
		}
		return false
	}
	h.eventually("names are "+state+" "+detail, ok)
	h.eventually("a name of the zone, or none", func() bool {
		return strings.HasPrefix(h.Try("getent", "ahostsv4", "host.min.internal").Stdout, "127.0.0.1") == found &&
			strings.HasPrefix(h.Try("dig", "+short", "host.min.internal").Stdout, "127.0.0.1") == found
	})
	h.eventually("link min0, or none", func() bool { return (h.Try("ip", "link", "show", "min0").Status == 0) == link })
}

// TestDelegate: from systemd 258 on a file does what the link does. It is written at once and read when resolved
// starts again, as after an upgrade from 257: the link goes then, and comes back where a delegate cannot work.
// Nobody reloads resolved for it, which would end every lookup under way.
func TestDelegate(t *testing.T) {
	h := &host{Machine: vmlab.Prepare(t, newer), t: t, names: vmlab.ServeNames(t)}
	h.Boot()
	h.eventually("a name of the outside world", h.outerName)
	before := h.settledSnapshot()
	started := h.Must("systemctl", "show", "-P", "ExecMainStartTimestamp", "systemd-resolved").Stdout
	h.Must(vmlab.Program(vmlab.Minhost), "finalize-install", "--yes", "--operator", vmlab.Runner)
	h.namesAre("ok", "programs that use glibc: yes", true, true)
	h.Must(installed, "verify", "--before-reboot")
	if now := h.Must("systemctl", "show", "-P", "ExecMainStartTimestamp", "systemd-resolved").Stdout; now != started {
		t.Error("resolved was started again")
	}
	if journal := h.Must("journalctl", "-b", "-o", "cat", "-u", "systemd-resolved").Stdout; strings.Contains(journal, "eload") {
		t.Errorf("resolved was reloaded: %s", journal)
	}
	h.Must("systemctl", "restart", "systemd-resolved")
	h.namesAre("ok", "by a delegate", true, false)

	h.Reboot()
	h.eventually("a name of the outside world after the reboot", h.outerName)
	if r := h.Try(installed, "verify", "--after-reboot", "--wait", "20s"); r.Status != 0 {
		t.Errorf("%v", r)
	}
	h.namesAre("ok", "by a delegate", true, false)
	for _, c := range []struct {
		setting, detail string
		link            bool
	}{
		{"DNSSEC=yes", "by a delegate", false},
		{"DNSOverTLS=opportunistic", "by a delegate", false},
		{"DNSOverTLS=yes\nDNS=198.51.100.1", "programs that use glibc: yes", true},
	} {
		h.Sh("mkdir -p /etc/systemd/resolved.conf.d; printf '[Resolve]\n" + c.setting + "\n' >/etc/systemd/resolved.conf.d/lab.conf; systemctl reset-failed systemd-resolved; systemctl restart systemd-resolved")
		h.zoneIs("ok", c.detail, true, c.link)
	}
	h.Sh("rm -r /etc/systemd/resolved.conf.d; systemctl reset-failed systemd-resolved; systemctl restart systemd-resolved")

	h.Must(installed, "finalize-install", "--undo", "--yes")
	if !h.outerName() {
		t.Error("a name of the outside world does not resolve after undo")
	}
	h.Reboot() // resolved forgets the delegate
	h.eventually("a name of the outside world after undo and reboot", h.outerName)
	if diff := vmlab.Diff(stable(before), stable(h.settledSnapshot())); len(diff) > 0 {
		t.Errorf("the machine is not as it was:\n  %s", strings.Join(diff, "\n  "))
	}
	if zone := h.names.Leaked(); len(zone) > 0 {
		t.Logf("names of the zone asked outside, after undo: %v", zone)
	}
}

// TestDelegateFallback: a link would take all names away from a host that lives on FallbackDNS=; a delegate
// takes none.
func TestDelegateFallback(t *testing.T) {
	h := &host{Machine: vmlab.Prepare(t, newer), t: t, names: vmlab.ServeNames(t)}
	h.Write("/etc/systemd/network/50-lab.network", "[Match]\nName=eth0\n[Network]\nAddress=198.51.100.2/24\nGateway=198.51.100.1\n", 0o644)
	h.Write("/etc/systemd/resolved.conf.d/lab.conf", "[Resolve]\nFallbackDNS="+vmlab.Outside+"\n", 0o644)
	h.Boot()
	h.eventually("a name of the outside world", h.outerName)
	h.Must(vmlab.Program(vmlab.Minhost), "finalize-install", "--yes", "--operator", vmlab.Runner)
	h.namesAre("degraded", "FallbackDNS=", false, false)
	h.Must("systemctl", "restart", "systemd-resolved")
	h.namesAre("ok", "by a delegate", true, false)
	h.Must(installed, "finalize-install", "--undo", "--yes")
	if !h.outerName() {
		t.Error("a name of the outside world does not resolve after undo")
	}
}
