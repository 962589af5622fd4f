package resolved

import (
	"net/netip"
	"testing"
)

// TestAnswererAddress: 127.0.0.1 and no other loopback address (systemd 248 to 250 bind the socket to the link
// for all others), the address of the link of global scope.
func TestAnswererAddress(t *testing.T) {
	p := DefaultParams()
	if p.Answerer.Addr() != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("answerer %s", p.Answerer)
	}
	if a := p.Address.Addr(); a.IsLoopback() || a.IsLinkLocalUnicast() || !a.Is4() {
		t.Errorf("link address %s", p.Address)
	}
}
