package standalone

import (
	"log/slog"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAnswererSpeaksPlainTCP: what the answerer gets is a UDP and a TCP socket, not a Multipath TCP one,
// which Go makes where it can.
func TestAnswererSpeaksPlainTCP(t *testing.T) {
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddrPort(free.Addr().String())
	free.Close()
	files, err := listenAnswerer(t.Context(), []Listen{{Addr: addr}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(files)
	for i, want := range []int{unix.IPPROTO_UDP, unix.IPPROTO_TCP} {
		got, err := unix.GetsockoptInt(int(files[i].Fd()), unix.SOL_SOCKET, unix.SO_PROTOCOL)
		if err != nil || got != want {
			t.Errorf("socket %d: protocol %d, want %d: %v", i, got, want, err)
		}
	}
}
