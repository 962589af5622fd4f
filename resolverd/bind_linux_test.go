package resolverd

import (
	"syscall"
	"testing"
)

// TestPlainTCP: the listeners speak TCP, not Multipath TCP, which Go gives where it can.
func TestPlainTCP(t *testing.T) {
	got, err := bind(Config{Port: freePort(t)}.endpoints(), (&logLines{}).logger())
	if err != nil {
		t.Fatal(err)
	}
	defer got.close()
	raw, err := got.tcp[0].SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var protocol int
	var optErr error
	if err := raw.Control(func(fd uintptr) {
		protocol, optErr = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_PROTOCOL)
	}); err != nil || optErr != nil {
		t.Fatal(err, optErr)
	}
	if protocol != syscall.IPPROTO_TCP {
		t.Errorf("protocol %d, want %d", protocol, syscall.IPPROTO_TCP)
	}
}
