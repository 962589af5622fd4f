package resolverd

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/goleak"

	"github.com/gominimal/minhost/resolverd/zonefile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen. Nothing is measured against it.
const patience = 10 * time.Second

// logLines is a logger's output, for tests that hold what is said.
type logLines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logLines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

func (l *logLines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// pair is a UDP and a TCP socket on one free port, as a service manager would hold them.
type pair struct {
	addr netip.AddrPort
	udp  *net.UDPConn
	tcp  *net.TCPListener
}

func newPair(t *testing.T, ip string) pair {
	t.Helper()
	for range 50 {
		udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), 0)))
		if err != nil {
			t.Fatal(err)
		}
		addr := udp.LocalAddr().(*net.UDPAddr).AddrPort()
		tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
		if err != nil {
			udp.Close()
			continue
		}
		t.Cleanup(func() { udp.Close(); tcp.Close() })
		return pair{addr, udp, tcp}
	}
	t.Fatal("no port is free for both UDP and TCP")
	return pair{}
}

// files are duplicates, as a new process would inherit them: TCP first.
func (p pair) files(t *testing.T) []*os.File {
	t.Helper()
	return []*os.File{fileOf(t, p.tcp), fileOf(t, p.udp)}
}

func fileOf(t *testing.T, socket interface{ File() (*os.File, error) }) *os.File {
	t.Helper()
	f, err := socket.File()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// running is an answerer under test with its zone file.
type running struct {
	*Server
	host, box pair
	folder    string
	log       *logLines
	stop      func() // ends Serve and waits for it
}

func (r *running) zonePath() string { return filepath.Join(r.folder, "zone") }

// start runs an answerer on handed-over sockets. change may alter it before it serves.
func start(t *testing.T, change func(*Server)) *running {
	t.Helper()
	r := &running{host: newPair(t, "127.0.0.1"), box: newPair(t, "127.0.0.1"), folder: t.TempDir(), log: &logLines{}}
	r.serve(t, change)
	return r
}

func (r *running) serve(t *testing.T, change func(*Server)) {
	t.Helper()
	s, err := Listen(Config{
		Port: r.host.addr.Port(), BoxPort: r.box.addr.Port(),
		Files:    append(r.box.files(t), r.host.files(t)...),
		ZoneFile: r.zonePath(), BootID: "boot", Log: r.log.logger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(s)
	}
	r.Server = s
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(r.stop)
}

// publish replaces the zone file the way the helper does.
func (r *running) publish(t *testing.T, content []byte) {
	t.Helper()
	temp := filepath.Join(r.folder, ".zone.new")
	if err := os.WriteFile(temp, content, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temp, r.zonePath()); err != nil {
		t.Fatal(err)
	}
}

// zone encodes a zone file of this boot from "name address" lines.
func zone(generation uint64, lines ...string) []byte {
	f := zonefile.File{BootID: "boot", Generation: generation, Names: map[string]netip.Addr{}}
	for _, line := range lines {
		name, addr, _ := strings.Cut(line, " ")
		f.Names[name] = netip.MustParseAddr(addr)
	}
	return zonefile.Encode(f)
}

// ask puts the text form of a question over a network ("udp", "tcp") and describes the reply.
func ask(t *testing.T, network string, to netip.AddrPort, text string) string {
	t.Helper()
	msg, _ := question(t, text)
	m := unpack(t, msg)
	client := &dns.Client{Net: network, Timeout: patience}
	reply, _, err := client.Exchange(m, to.String())
	if err != nil {
		t.Fatalf("> %s over %s: %v", text, network, err)
	}
	return describe(reply)
}

// until asks the host view for the address of name until it is want, which may be "NXDOMAIN".
func (r *running) until(t *testing.T, name, want string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	got := ""
	for time.Now().Before(deadline) {
		got = ask(t, "udp", r.host.addr, name+".min.internal. A")
		if want == "NXDOMAIN" && strings.HasPrefix(got, want) || strings.HasSuffix(got, fmt.Sprintf(" A %s\n", want)) {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%s is not %s but %s", name, want, got)
}
