package cells

import (
	"strings"
	"syscall"
	"testing"

	"github.com/gominimal/minhost/verify/vmlab"
)

// TestInherited: what an admin set for all of resolved, which no private zone could live with, is not inherited
// by the link; and a host without IPv6 is as good.
func TestInherited(t *testing.T) {
	for _, suite := range []string{"bookworm-full", "trixie-full"} {
		t.Run(suite, func(t *testing.T) {
			h := &host{Machine: vmlab.Prepare(t, suite), t: t, open: vmlab.TCP(t, 8080), shut: vmlab.TCP(t, 8081), names: vmlab.ServeNames(t)}
			h.Write("/etc/systemd/resolved.conf.d/lab.conf", "[Resolve]\nDNSOverTLS=yes\nDNSSEC=yes\nLLMNR=yes\nMulticastDNS=yes\n", 0o644)
			h.Write("/etc/dnssec-trust-anchors.d/lab.negative", "nothing.example\n", 0o644) // in place of the list that has internal
			h.Write("/etc/sysctl.d/90-lab.conf", "net.ipv6.conf.all.disable_ipv6=1\nnet.ipv6.conf.default.disable_ipv6=1\nnet.ipv6.conf.lo.disable_ipv6=1\n", 0o644)
			h.Boot()
			h.Sh("sysctl -q -p /etc/sysctl.d/90-lab.conf") // the lab's sysctl service may have been too early
			if r := h.Try("cat", "/proc/net/if_inet6"); strings.Contains(r.Stdout, " lo") {
				t.Fatalf("IPv6 is on: %s", r.Stdout)
			}
			if h.outerName() {
				t.Fatal("a name of the outside world resolves without TLS: the settings are not there")
			}
			h.Must(vmlab.Program(vmlab.Minhost), "finalize-install", "--yes", "--operator", vmlab.Runner)
			h.eventually("verify", func() bool { return h.Try(installed, "verify").Status == 0 })
			box := h.Start(vmlab.Runner, installed, "run", "--name", "web", "--egress", "deny", "--", "/bin/sh", "-c", "echo up; exec sleep 60")
			box.Await("up")
			if r := h.Try("/bin/sh", "-c", "getent ahostsv4 web.min.internal | sed -n '1s/ .*//p'"); !inRange(r.Stdout) {
				t.Errorf("%v", r)
			}
			if err := box.Stop(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		})
	}
}
