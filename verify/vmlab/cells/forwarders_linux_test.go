package cells

import (
	"strings"
	"syscall"
	"testing"

	"github.com/gominimal/minhost/verify/vmlab"
)

// TestForwarders: without systemd-resolved the cause is named together with a line to type; once it was typed,
// word for word, every program finds boxes, also after a reboot, and verify says so.
func TestForwarders(t *testing.T) {
	for _, c := range []struct {
		name    string
		says    string
		prepare func(*vmlab.Machine)
	}{
		{"dnsmasq", "dnsmasq runs, and is not told of min.internal", func(m *vmlab.Machine) {
			m.Write("/etc/resolv.conf", "nameserver 127.0.0.1\n", 0o644)
			m.Write("/etc/dnsmasq.d/lab.conf", "no-resolv\nserver="+vmlab.Outside+"\nlisten-address=127.0.0.1\nbind-interfaces\nstop-dns-rebind\nrebind-domain-ok=/example.com/\n", 0o644)
			enable(m, "multi-user.target", "dnsmasq.service")
		}},
		{"NetworkManager's dnsmasq", "NetworkManager's dnsmasq runs, and is not told of min.internal", func(m *vmlab.Machine) {
			managerOf["NetworkManager"](m, cell{})
			m.Write("/etc/NetworkManager/conf.d/dns.conf", "[main]\ndns=dnsmasq\nrc-manager=file\n", 0o644)
			m.Write("/etc/resolv.conf", "# NetworkManager will write this file\n", 0o644)
		}},
		{"unbound", "unbound runs, and is not told of min.internal", func(m *vmlab.Machine) {
			m.Write("/etc/resolv.conf", "nameserver 127.0.0.1\n", 0o644)
			m.Write("/etc/unbound/unbound.conf.d/lab.conf", "server:\n module-config: \"iterator\"\n private-address: 127.0.0.0/8\nforward-zone:\n name: \".\"\n forward-addr: "+vmlab.Outside+"\n", 0o644)
			enable(m, "multi-user.target", "unbound.service")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &host{Machine: vmlab.Prepare(t, "trixie-full"), t: t, cell: cell{"trixie", "networkd", "none", "none"}, open: vmlab.TCP(t, 8080), shut: vmlab.TCP(t, 8081), names: vmlab.ServeNames(t)}
			mask(h.Machine, "systemd-resolved.service")
			c.prepare(h.Machine)
			h.Boot()
			t.Cleanup(func() {
				if t.Failed() {
					t.Log(h.Try("/bin/sh", "-c", "cat /etc/resolv.conf; ps axww | grep -v ps; dig +short @127.0.0.1 host.min.internal; journalctl -b --no-pager -u unbound -u dnsmasq -u NetworkManager | tail -30").Stdout)
				}
			})
			h.eventually("a name of the outside world", h.outerName)
			h.Must(vmlab.Program(vmlab.Minhost), "finalize-install", "--yes", "--operator", vmlab.Runner)
			r := h.Must(installed, "verify")
			if !strings.Contains(r.Stdout, c.says) {
				t.Fatalf("verify does not say %q:\n%s", c.says, r.Stdout)
			}
			h.Sh(next(r.Stdout, c.says))
			h.told()
			h.Reboot()
			h.told()
			if zone := h.names.Leaked(); len(zone) > 0 {
				t.Errorf("names of the zone were asked outside: %v", zone)
			}
		})
	}
}

// next is what verify says to type below a line that says that.
func next(report, says string) string {
	_, rest, _ := strings.Cut(report, says)
	_, rest, _ = strings.Cut(rest, "next: ")
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// told wants every program to find a box, and verify to say through whom.
func (h *host) told() {
	h.t.Helper()
	h.eventually("a name of the outside world", h.outerName)
	h.eventually("verify", func() bool {
		return strings.Contains(h.Try(installed, "verify").Stdout, "which an admin told of min.internal")
	})
	box := h.Start(vmlab.Runner, installed, "run", "--name", "web", "--egress", "deny", "--", "/bin/sh", "-c", "echo up; exec sleep 60")
	box.Await("up")
	for _, args := range [][]string{
		{"/bin/sh", "-c", "getent ahostsv4 web.min.internal | sed -n '1s/ .*//p'"},
		{vmlab.Program(vmlab.Probe), "lookup", "web.min.internal"},
	} {
		if r := h.Try(args...); !inRange(r.Stdout) {
			h.t.Errorf("%v", r)
		}
	}
	if err := box.Stop(syscall.SIGTERM); err != nil {
		h.t.Error(err)
	}
}
