// Package inits installs, uses, reboots and removes the real minhost on Debian systems whose init is not
// systemd: sysvinit with its own scripts, and OpenRC. What boxes may reach is tried once; breaking things is
// the business of verify/vmlab/hosts.
package inits

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/vmlab"
)

func TestMain(m *testing.M) { os.Exit(vmlab.Main(m, "bookworm-sysv", "bookworm-openrc")) }

const installed = "/usr/local/lib/minhost/minhost"

// TestLife: after a reboot everything is back by itself, before the network is there; the init stops and starts
// helper and answerer, and boxes live on; after the undo the machine is as it was.
func TestLife(t *testing.T) {
	for _, c := range []struct{ suite, says, stop, start string }{
		{"bookworm-sysv", "sysvinit starts /etc/init.d/minhost-boot", "/etc/init.d/minhost-boot stop", "/etc/init.d/minhost-boot start"},
		{"bookworm-openrc", "openrc starts /etc/init.d/minhost-boot", "rc-service minhost-boot stop", "rc-service minhost-boot start"},
	} {
		t.Run(c.suite, func(t *testing.T) {
			m := vmlab.Prepare(t, c.suite)
			m.Write("/etc/network/interfaces", "auto lo eth0\niface lo inet loopback\niface eth0 inet static\n address "+vmlab.Inside+"/24\n"+
				" up test ! -x "+installed+" || nft list table inet minhost >/var/table-at-network\n", 0o644)
			m.Write("/etc/resolv.conf", "nameserver "+vmlab.Outside+"\n", 0o644)
			h := &host{m, t, vmlab.TCP(t, 8080)}
			m.Boot()
			h.eventually("the network", func() bool { return strings.Contains(m.Try("ip", "address").Stdout, vmlab.Inside) })
			before := m.Snapshot()
			m.Must(vmlab.Program(vmlab.Minhost), "finalize-install", "--yes", "--operator", vmlab.Runner)
			if r := m.Must(installed, "verify"); !strings.Contains(r.Stdout, c.says) {
				t.Errorf("verify does not say %q:\n%s", c.says, r.Stdout)
			}
			h.use()
			m.Must(installed, "verify", "--before-reboot")
			m.Reboot()
			if r := m.Try(installed, "verify", "--after-reboot", "--wait", "20s"); r.Status != 0 {
				t.Errorf("%v\n%s", r, m.Console())
			}
			h.use()
			if r := m.Try("grep", "-q", "hook output", "/var/table-at-network"); r.Status != 0 {
				t.Error("the network was brought up without the table")
			}
			m.Sh("rm -f /var/table-at-network")
			h.again(c.stop, c.start)
			m.Must(installed, "finalize-install", "--undo", "--yes")
			same(t, before, m.Snapshot())
			m.Reboot()
			same(t, before, m.Snapshot())
		})
	}
}

// same compares two snapshots. OpenRC makes an empty cgroup for each service that it ever started.
func same(t *testing.T, before, now []string) {
	t.Helper()
	diff := slices.DeleteFunc(vmlab.Diff(before, now), func(l string) bool {
		return strings.Contains(l, " cgroup /sys/fs/cgroup/") && !strings.Contains(l, "/minhost/") && !strings.HasSuffix(l, "/minhost")
	})
	if len(diff) > 0 {
		t.Errorf("the machine is not as it was:\n  %s", strings.Join(diff, "\n  "))
	}
}

type host struct {
	*vmlab.Machine
	t    *testing.T
	open *vmlab.Server
}

func (h *host) eventually(what string, holds func() bool) {
	h.t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("not within 30 s: %s\n%s", what, h.Console())
		}
	}
}

// use runs a box that may reach nothing and one that may reach one server.
func (h *host) use() {
	h.t.Helper()
	for flag, reaches := range map[string]bool{"--egress=deny": false, "--allow=" + vmlab.Outside + "/32:8080": true} {
		hits := h.open.Hits()
		h.TryAs(vmlab.Runner, installed, "run", "--name", "some", flag, "--", "/usr/bin/curl", "-sS", "--http0.9", "-o", "/dev/null", "-m", "2", "telnet://"+h.open.Addr())
		if (h.open.Hits() > hits) != reaches {
			h.t.Errorf("box with %s: %d connections", flag, h.open.Hits()-hits)
		}
	}
}

// again has the init stop and start the services under a live box.
func (h *host) again(stop, start string) {
	h.t.Helper()
	box := h.Start(vmlab.Runner, installed, "run", "--name", "live", "--egress", "deny", "--", "/bin/sh", "-c", "echo up; exec sleep 60")
	box.Await("up")
	h.Sh(stop)
	if h.Try(installed, "status").Status == 0 {
		h.t.Error("the helper answers although the init stopped it")
	}
	h.Sh(start)
	h.Must(installed, "verify")
	if box.Ended() || !strings.Contains(h.Must(installed, "ls").Stdout, "live") {
		h.t.Errorf("the box is gone: %s", box.Stderr())
	}
	if err := box.Stop(syscall.SIGTERM); err != nil {
		h.t.Error(err)
	}
}
