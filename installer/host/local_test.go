package host_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/gominimal/minhost/installer/host"
)

func TestLocal(t *testing.T) {
	want := map[netip.Addr]bool{
		netip.MustParseAddr("127.0.64.7"): true, netip.IPv6Loopback(): true,
		netip.MustParseAddr("192.0.2.1"): false, netip.MustParseAddr("2001:db8::1"): false, netip.IPv4Unspecified(): false,
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range all {
		a, ok := netip.AddrFromSlice(x.(*net.IPNet).IP)
		if !ok {
			t.Fatal(x)
		}
		want[a.Unmap()] = true
	}
	for a, is := range want {
		if host.Local(a) != is {
			t.Errorf("%s: %v", a, !is)
		}
	}
}
