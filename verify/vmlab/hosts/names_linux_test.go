package hosts

import (
	"strings"
	"syscall"
	"testing"

	"github.com/gominimal/minhost/verify/vmlab"
)

// watchNames looks a name of the outside world up again and again, as programs do, each time another
// one so that no cache answers. The function that it returns ends that, and wants every lookup to have
// worked.
func (h *host) watchNames() func() {
	h.t.Helper()
	p := h.Start("", "/bin/sh", "-c", `i=0; while :; do i=$((i+1)); getent ahostsv4 n$i.example.com >/dev/null || echo "lookup $i failed"; sleep 0.03; [ $i != 1 ] || echo began; done`)
	p.Await("began")
	return func() {
		h.t.Helper()
		if err := p.Stop(syscall.SIGTERM); err != nil {
			h.t.Error(err)
		}
		if out := strings.TrimPrefix(p.Stdout(), "began\n"); out != "" {
			h.t.Errorf("names of the outside world failed meanwhile:\n%s", out)
		}
	}
}

// strangers are the lookups outside the zone that reached the answerer: it refuses them and counts.
func (h *host) strangers() string {
	h.t.Helper()
	h.Must("systemctl", "restart", "minhost-resolverd.service")
	journal := h.Must("journalctl", "-b", "-o", "cat", "-u", "minhost-resolverd.service").Stdout
	if !strings.Contains(journal, "msg=answered") {
		h.t.Errorf("the answerer does not say what it answered:\n%s", journal)
	}
	var refused []string
	for line := range strings.Lines(journal) {
		if strings.Contains(line, " refused=") {
			refused = append(refused, line)
		}
	}
	return strings.Join(refused, "")
}

// TestFallbackOnly: a host that lives on FallbackDNS= would lose every other name to a link with a
// server. The names step is Blocked and says so; all else works, names of the outside at every moment.
func TestFallbackOnly(t *testing.T) {
	h := newHost(t, "bookworm")
	h.Write("/etc/systemd/network/50-lab.network", "[Match]\nName=eth0\n[Network]\nAddress=198.51.100.2/24\nGateway=198.51.100.1\n", 0o644)
	h.Write("/etc/systemd/resolved.conf.d/lab.conf", "[Resolve]\nFallbackDNS="+vmlab.Outside+"\n", 0o644)
	h.boot()
	before := h.Snapshot()
	well := h.watchNames()
	h.install()
	if r := h.Try(installed, "verify"); r.Status != 0 || !strings.Contains(r.Stdout, "FallbackDNS=") {
		t.Errorf("verify: want it ready, and the cause named: %v", r)
	}
	h.use(false)
	h.Must(installed, "finalize-install", "--undo", "--yes")
	well()
	h.Same(before)
}
