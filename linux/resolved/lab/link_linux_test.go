// Package lab tests the link of linux/resolved on the real kernel, in a network namespace of its
// own. It speaks to no systemd-resolved, and nothing imports it.
package lab

import (
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/gominimal/minhost/linux/resolved"
	"github.com/gominimal/minhost/verify/netlab"
)

func TestMain(m *testing.M) { os.Exit(netlab.Main(m)) }

func ip(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("ip %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func TestLink(t *testing.T) {
	var n resolved.Netlink
	ctx := t.Context()
	p := resolved.DefaultParams()
	before := ip(t, "-o", "address") + ip(t, "-o", "link") + ip(t, "route")
	if _, ok, err := n.Find(ctx, p.Link); ok || err != nil {
		t.Fatalf("found before it was made: %v, %v", ok, err)
	}
	if err := n.Delete(ctx, p.Link); err != nil {
		t.Errorf("delete of nothing: %v", err)
	}
	made, err := n.Create(ctx, p.Link, p.Address)
	if err != nil {
		t.Fatal(err)
	}
	found, ok, err := n.Find(ctx, p.Link)
	if err != nil || !ok || found.Index != made.Index || !found.Ours || !found.Up || len(found.Addrs) != 1 || found.Addrs[0] != p.Address {
		t.Errorf("found %+v, %v, %v", found, ok, err)
	}
	t.Logf("kind %s", found.Kind)
	if out := ip(t, "-4", "-o", "address", "show", p.Link); !strings.Contains(out, "192.0.2.53/32 scope global") {
		t.Errorf("address: %s", out)
	}
	if out := ip(t, "-6", "-o", "address", "show", p.Link); out != "" {
		t.Errorf("a link-local address: %s", out)
	}
	if out := ip(t, "route"); out != "" {
		t.Errorf("a route: %s", out)
	}
	if _, err := n.Create(ctx, p.Link, p.Address); err == nil {
		t.Error("made twice")
	}
	if found, ok, _ := n.Find(ctx, p.Link); !ok || found.Index != made.Index {
		t.Error("a second create touched the first link")
	}
	ip(t, "link", "set", p.Link, "down")
	if found, _, _ := n.Find(ctx, p.Link); found.Up {
		t.Error("up although it is down")
	}
	if err := n.Delete(ctx, p.Link); err != nil {
		t.Fatal(err)
	}
	if after := ip(t, "-o", "address") + ip(t, "-o", "link") + ip(t, "route"); after != before {
		t.Errorf("left over:\n%s\nbefore:\n%s", after, before)
	}
}

func TestLinkOfOthers(t *testing.T) {
	var n resolved.Netlink
	ip(t, "link", "add", "min0", "type", "bridge")
	defer ip(t, "link", "del", "min0")
	found, ok, err := n.Find(t.Context(), "min0")
	if err != nil || !ok || found.Ours || found.Kind != "bridge" {
		t.Errorf("%+v, %v, %v", found, ok, err)
	}
	if err := n.Delete(t.Context(), "min0"); err == nil || !strings.Contains(err.Error(), "not made by minhost") {
		t.Errorf("delete: %v", err)
	}
	if _, ok, _ := n.Find(t.Context(), "min0"); !ok {
		t.Error("a foreign link is gone")
	}
}

// TestLinkFails: what cannot be made leaves nothing behind, and what was in its way stays.
func TestLinkFails(t *testing.T) {
	var n resolved.Netlink
	if _, err := n.Create(t.Context(), "min0", netip.Prefix{}); err == nil {
		t.Error("made without an address")
	}
	if out := ip(t, "-o", "link"); strings.Contains(out, "min0") {
		t.Errorf("left over: %s", out)
	}
	// Where there is no dummy driver the peer's name is needed too.
	ip(t, "link", "add", "min0-peer", "type", "bridge")
	defer ip(t, "link", "del", "min0-peer")
	made, err := n.Create(t.Context(), "min0", resolved.DefaultParams().Address)
	out := ip(t, "-o", "link")
	if !strings.Contains(out, "min0-peer") || strings.Contains(out, "min0:") || strings.Contains(out, "min0@") {
		if err != nil || made.Kind != "dummy" {
			t.Errorf("after %v:\n%s", err, out)
		}
	}
	if err := n.Delete(t.Context(), "min0"); err != nil {
		t.Error(err)
	}
}
