package mac

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestAnswers: what the answerer answered is counted in status, and root sees each lookup while it watches;
// the answerer's user alone may report, and is the owner of the socket.
func TestAnswers(t *testing.T) {
	m := newMac(t, nil)
	m.install()
	sock := filepath.Join(m.Root, "Library/Application Support/minhost/run/reports.sock")
	if fi, err := os.Lstat(sock); err != nil || fi.Sys().(*syscall.Stat_t).Uid != 65534 || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", fi, err)
	}
	m.until("counters", func() bool {
		return strings.Contains(m.want(0, m.ada("status")).stdout, " address")
	})
	seen := m.watch("--dns")
	m.until("root sees a lookup of the host", func() bool {
		m.LookupFresh("minhost.min.internal")
		return strings.Contains(seen.String(), "A minhost.min.internal: address (udp, 127.0.0.1:")
	})
	m.until("and that AAAA is asked, and answered without an address", func() bool {
		return strings.Contains(seen.String(), "AAAA minhost.min.internal: nodata")
	})
}

// watch runs `minhost watch` as root until the test ends.
func (m *mac) watch(args ...string) *output {
	m.t.Helper()
	cmd := m.command(context.Background(), 0, program, append([]string{"watch"}, args...)...)
	out := &output{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return out
}

// output is what a running program printed so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
