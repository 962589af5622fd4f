package cells

import (
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/vmlab"
)

// TestHands: what people and NetworkManager do to the link is right again within two seconds, told as an event,
// and names of the outside world work all the time. Who does it without end wins.
func TestHands(t *testing.T) {
	h := &host{Machine: vmlab.Prepare(t, "trixie-full"), t: t, cell: cell{"trixie", "NetworkManager", "stub", "none"}, open: vmlab.TCP(t, 8080), shut: vmlab.TCP(t, 8081), names: vmlab.ServeNames(t)}
	prepare(h.Machine, h.cell)
	h.Boot()
	h.eventually("a name of the outside world", h.outerName)
	h.Must(vmlab.Program(vmlab.Minhost), "finalize-install", "--yes", "--operator", vmlab.Runner)
	h.verify()
	events := h.Start("", installed, "watch", "--json")
	time.Sleep(500 * time.Millisecond)
	if r := h.Must("nmcli", "-t", "-f", "DEVICE,STATE", "device"); !strings.Contains(r.Stdout, "min0:unmanaged") {
		t.Errorf("NetworkManager manages the link: %s", r.Stdout)
	}
	for _, hand := range []struct {
		line  string
		event string // "" where nothing has to be put right
	}{
		{"ip link del min0", "no link min0"},
		{"ip link set min0 down", "is down or has lost"},
		{"ip address flush dev min0", "is down or has lost"},
		{"resolvectl dns min0 198.51.100.1", "servers of min0"},
		{"resolvectl domain min0 '~.'", "domains of min0"},
		{"resolvectl default-route min0 yes", "default route"},
		{"nmcli device set min0 managed yes; nmcli device disconnect min0 || true", ""},
		{"nmcli networking off; nmcli networking on", ""},
		{"systemctl restart NetworkManager", ""},
		{"systemctl restart systemd-resolved", ""},
	} {
		before := strings.Count(events.Stdout(), hand.event)
		h.Sh(hand.line)
		start := time.Now()
		h.eventually("names of the zone after: "+hand.line, func() bool {
			r := h.Try("resolvectl", "query", "--legend=no", "host.min.internal")
			return r.Status == 0 && strings.Contains(r.Stdout, "127.0.0.1")
		})
		if took := time.Since(start); took > 2*time.Second+700*time.Millisecond {
			t.Errorf("%s: right after %v", hand.line, took)
		} else {
			t.Logf("%s: right after %v", hand.line, took.Round(time.Millisecond))
		}
		if hand.event != "" {
			h.eventually("an event after: "+hand.line, func() bool { return strings.Count(events.Stdout(), hand.event) > before })
		}
		h.eventually("a name of the outside world after: "+hand.line, h.outerName)
	}
	if !strings.Contains(events.Stdout(), `"repaired"`) {
		t.Errorf("events: %s", events.Stdout())
	}

	h.Start("", "/bin/sh", "-c", "while :; do ip link del min0 2>/dev/null; sleep 0.2; done")
	h.eventually("the keeper gives way", func() bool {
		return strings.Contains(h.Must("journalctl", "-b", "-o", "cat", "-u", "minhost-names.service").Stdout, "again and again")
	})
	if !h.outerName() {
		t.Error("a name of the outside world does not resolve meanwhile")
	}
}
