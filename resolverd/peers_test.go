package resolverd

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"
)

// TestPeers: loopback without asking, the host's own addresses from a list that is at most a second
// old, and nothing else.
func TestPeers(t *testing.T) {
	now := time.Unix(1000, 0)
	lists := 0
	own := []net.Addr{&net.IPNet{IP: net.ParseIP("192.0.2.1"), Mask: net.CIDRMask(24, 32)}, &net.IPNet{IP: net.ParseIP("fe80::1")}}
	p := &peers{now: func() time.Time { return now }, list: func() ([]net.Addr, error) { lists++; return own, nil }}
	check := func(addr string, want bool) {
		t.Helper()
		if got := p.local(netip.MustParseAddr(addr)); got != want {
			t.Errorf("local(%s) = %v", addr, got)
		}
	}
	check("127.0.0.1", true)
	check("127.0.64.7", true)
	check("::1", true)
	check("::ffff:127.0.0.1", true)
	if lists != 0 {
		t.Error("interfaces listed for loopback")
	}
	check("192.0.2.1", true)
	check("::ffff:192.0.2.1", true)
	check("fe80::1%eth0", true)
	check("192.0.2.2", false)
	check("2001:db8::1", false)
	if lists != 1 {
		t.Errorf("interfaces listed %d times within a second", lists)
	}
	own = own[1:]
	now = now.Add(ownAddrsAge)
	check("192.0.2.1", false)
	p.list = func() ([]net.Addr, error) { return own, errors.New("no netlink") }
	now = now.Add(ownAddrsAge)
	check("fe80::1", false)
	check("127.0.0.1", true)
}
