package mac

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/host/hosttest"
	"github.com/gominimal/minhost/verify/fakedarwin"
)

// rebooted is an installed Mac after verify --before-reboot and a reboot.
func rebooted(t *testing.T, release int, before func(*mac)) *mac {
	t.Helper()
	m := newMac(t, func(f *fakedarwin.Mac) { f.Release = release })
	m.install()
	m.want(0, m.root("verify", "--before-reboot"))
	if before != nil {
		before(m)
	}
	if err := m.Reboot(-40 * time.Hour); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestReboot: everything is back without a login and without a hand, though lo0 was cleared and the clock
// jumped back by almost two days; no file was written by it but the journal.
func TestReboot(t *testing.T) {
	var installed map[string]string
	m := rebooted(t, 15, func(m *mac) {
		m.run("old", sleep...)
		installed = m.snapshot()
	})
	m.want(0, m.root("verify", "--after-reboot", "--wait", "30s"), "this host is ready", "range")
	for _, line := range hosttest.Diff(installed, m.snapshot()) {
		if !strings.Contains(line, "journal.json") && !strings.Contains(line, ".log") && !strings.Contains(line, "/run") && !strings.Contains(line, "apply.lock") {
			t.Errorf("the boot changed %s", line)
		}
	}
	if left := m.leases(); len(left) > 0 || m.Lookup("old.min.internal").IsValid() {
		t.Errorf("leases of another boot: %v", left)
	}
	log, err := os.ReadFile(filepath.Join(m.Root, "private/var/log/dev.minimal.loopback.log"))
	if err != nil || !strings.Contains(string(log), "added=254 mended=0 present=254/254") || !strings.Contains(string(log), "since_boot=") {
		t.Errorf("log: %v\n%s", err, log)
	}
	m.want(0, m.ada("finalize-install", "--undo", "--yes"))
}

// TestRebootProvesNothingByOldLogs: without a reboot, and with a job that did not run in this boot, verify
// is not satisfied by what an earlier boot logged.
func TestRebootProvesNothingByOldLogs(t *testing.T) {
	m := newMac(t, nil)
	m.install()
	m.want(0, m.root("verify", "--before-reboot"))
	m.want(1, m.root("verify", "--after-reboot"), "still the boot")
	plist := filepath.Join(m.Root, "Library/LaunchDaemons/dev.minimal.loopback.plist")
	if err := os.Rename(plist, plist+".away"); err != nil {
		t.Fatal(err)
	}
	if err := m.Reboot(0); err != nil {
		t.Fatal(err)
	}
	r := m.want(1, m.root("verify", "--after-reboot"), "none of 254 addresses is on lo0", "has no line of this boot")
	if strings.Contains(r.stdout, "range 0") || strings.Contains(r.stdout, "range 2") {
		t.Errorf("a time of another boot: %v", r)
	}
}

// TestRebootAliasFails: one alias fails twice at boot; the retry inside the job brings it.
func TestRebootAliasFails(t *testing.T) {
	m := rebooted(t, 26, func(m *mac) { m.FailAdds["127.0.64.77"] = 2 })
	m.until("254 aliases", m.complete)
	m.until("ready", func() bool { return m.ada("verify").status == 0 })
}

// TestRebootAliasFailsLong: what the retry inside cannot mend launchd's does: the job ended with another
// status than 0 and is still loaded (with LaunchOnlyOnce it would be gone).
func TestRebootAliasFailsLong(t *testing.T) {
	m := rebooted(t, 26, func(m *mac) { m.FailAdds["127.0.64.77"] = 20 })
	m.until("254 aliases by a second run", m.complete)
	m.until("the log says what failed, and what came then", func() bool {
		log, _ := os.ReadFile(filepath.Join(m.Root, "private/var/log/dev.minimal.loopback.log"))
		bad, good := strings.Index(string(log), `msg="not ready"`), strings.Index(string(log), "msg=ready")
		return bad >= 0 && good > bad && strings.Contains(string(log), "127.0.64.77")
	})
}

// TestRebootDisabled: somebody disabled the answerer: verify names it, finalize-install enables it.
func TestRebootDisabled(t *testing.T) {
	for _, release := range []int{13, 26} {
		t.Run(fmt.Sprint(release), func(t *testing.T) {
			m := rebooted(t, release, func(m *mac) { m.Disable("dev.minimal.resolverd") })
			m.until("254 aliases", m.complete)
			m.want(1, m.ada("verify"), "dev.minimal.resolverd is disabled", "launchctl enable system/dev.minimal.resolverd")
			m.want(0, m.ada("finalize-install", "--yes"), "this host is ready")
		})
	}
}

// TestRebootSwitchedOff: a switch in System Settings leaves no trace in launchd's lists.
func TestRebootSwitchedOff(t *testing.T) {
	m := newMac(t, nil)
	m.install()
	m.Forget("dev.minimal.helper")
	m.want(1, m.ada("verify"), "Login Items", "not disabled")
	m.want(0, m.ada("finalize-install", "--yes"))
}

// TestRebootPortTaken: another program has the answerer's port at boot. The log says so and how to
// find it; when it ends, launchd's next start brings the answerer back, with sockets of its own.
func TestRebootPortTaken(t *testing.T) {
	m := newMac(t, nil)
	m.install()
	m.want(0, m.root("verify", "--before-reboot"))
	var taken net.PacketConn
	m.AtBoot = func() {
		var err error
		if taken, err = net.ListenPacket("udp4", "127.0.0.1:15353"); err != nil {
			t.Error(err)
		}
	}
	if err := m.Reboot(0); err != nil {
		t.Fatal(err)
	}
	m.until("254 aliases", m.complete)
	log := filepath.Join(m.Root, "private/var/log/dev.minimal.resolverd.log")
	m.until("the log says it", func() bool {
		b, _ := os.ReadFile(log)
		return strings.Contains(string(b), "listen udp 127.0.0.1:15353: bind: address already in use, held by")
	})
	taken.Close()
	m.until("ready by itself", func() bool { return m.ada("verify").status == 0 })
}

// TestRebootSlow: launchd takes its time; who asks early is told so, and nothing is broken by asking.
func TestRebootSlow(t *testing.T) {
	m := rebooted(t, 26, func(m *mac) { m.Slow = 40 })
	m.want(1, m.ada("verify"))
	m.want(0, m.root("verify", "--after-reboot", "--wait", "60s"))
}

// TestRebootSlowAdds: while the range is on its way up no box gets an address of it, not even one that is
// there; when it is whole all do.
func TestRebootSlowAdds(t *testing.T) {
	m := rebooted(t, 26, func(m *mac) { m.SlowAdds = 20 * time.Millisecond })
	m.until("some aliases", func() bool { return len(m.Aliases()) > 20 })
	m.until("the helper answers", func() bool { return m.ada("status").status == 0 })
	r := m.ada("run", "--name", "early", "--", "/bin/true")
	if whole := m.complete(); !whole && (r.status != 125 || !strings.Contains(r.stderr, "of 254 addresses of the range are not on lo0")) {
		t.Errorf("a box before the range is whole: %v", r)
	} else if whole && r.status != 0 && r.status != 125 {
		t.Errorf("%v", r)
	}
	m.want(0, m.root("verify", "--after-reboot", "--wait", "60s"))
	m.until("a box", func() bool { return m.ada("run", "--name", "late", "--", "/bin/true").status == 0 })
}

// TestOwnSockets: the admin's switch for a Mac whose launchd hands over sockets that fall silent.
func TestOwnSockets(t *testing.T) {
	m := newMac(t, nil)
	m.install()
	m.put("private/etc/minhost/config.json", `{"own_sockets": true}`)
	m.want(0, m.ada("finalize-install", "--yes"), "this host is ready")
	plist, err := os.ReadFile(filepath.Join(m.Root, "Library/LaunchDaemons/dev.minimal.resolverd.plist"))
	if err != nil || strings.Contains(string(plist), "Sockets") {
		t.Errorf("%v\n%s", err, plist)
	}
	if err := m.Reboot(0); err != nil {
		t.Fatal(err)
	}
	m.until("ready", func() bool { return m.ada("verify").status == 0 })
	m.put("private/etc/minhost/config.json", `{"own_socket": true}`)
	m.want(1, m.ada("finalize-install", "--show"), "own_socket", "config.json")
	m.put("private/etc/minhost/config.json", `{"own_sockets": true}`)
	m.want(0, m.ada("finalize-install", "--undo", "--yes"))
}
