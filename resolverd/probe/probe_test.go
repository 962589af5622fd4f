package probe

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/goleak"

	"github.com/gominimal/minhost/resolverd"
	"github.com/gominimal/minhost/resolverd/zonefile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sockets are UDP and TCP on one free port of loopback.
func sockets(t *testing.T) (*net.UDPConn, *net.TCPListener) {
	t.Helper()
	for range 50 {
		udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(udp.LocalAddr().(*net.UDPAddr).AddrPort()))
		if err == nil {
			t.Cleanup(func() { udp.Close(); tcp.Close() })
			return udp, tcp
		}
		udp.Close()
	}
	t.Fatal("no port is free for both UDP and TCP")
	return nil, nil
}

// answerer runs the real one over a zone file and returns its address.
func answerer(t *testing.T, f zonefile.File) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "zone")
	if err := os.WriteFile(path, zonefile.Encode(f), 0o644); err != nil {
		t.Fatal(err)
	}
	udp, tcp := sockets(t)
	var files []*os.File
	for _, socket := range []interface{ File() (*os.File, error) }{udp, tcp} {
		file, err := socket.File()
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	port := uint16(udp.LocalAddr().(*net.UDPAddr).Port)
	go func() {
		done <- resolverd.Run(ctx, resolverd.Config{Port: port, Files: files, ZoneFile: path, BootID: f.BootID, Log: slog.New(slog.DiscardHandler)})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return udp.LocalAddr().String()
}

func TestCheck(t *testing.T) {
	addr := answerer(t, zonefile.File{BootID: "boot", Generation: 77})
	got, err := Check(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	if got.Serial != 77 || got.Queries != 6 || got.Slowest <= 0 {
		t.Errorf("%+v", got)
	}
}

func TestLookup(t *testing.T) {
	web := netip.MustParseAddr("127.0.64.9")
	addr := answerer(t, zonefile.File{BootID: "boot", Generation: 1, Names: map[string]netip.Addr{"web": web, "api.web": web, "off": {}}})
	for name, want := range map[string]netip.Addr{"web": web, "WEB.min.internal": web, "api.web.min.internal.": web, "minhost": hostAddr} {
		if got, err := Lookup(t.Context(), addr, name); got != want || err != nil {
			t.Errorf("Lookup(%s) = %s, %v", name, got, err)
		}
	}
	for name, want := range map[string]error{"nobody": ErrNoName, "off": ErrNoAddress, "web.example": ErrNoName} {
		if got, err := Lookup(t.Context(), addr, name); got.IsValid() || !errors.Is(err, want) {
			t.Errorf("Lookup(%s) = %s, %v; want %v", name, got, err, want)
		}
	}
}

// TestNobodyAnswers: a closed port, and one that takes queries and says nothing, end in time.
func TestNobodyAnswers(t *testing.T) {
	udp, tcp := sockets(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := Lookup(ctx, udp.LocalAddr().String(), "web"); err == nil {
		t.Error("Lookup found an answer in silence")
	}
	if took := time.Since(began); took > timeout {
		t.Errorf("Lookup took %s, its context had 200 ms", took)
	}
	udp.Close()
	tcp.Close()
	_, err := Check(t.Context(), udp.LocalAddr().String())
	if err == nil || strings.Count(err.Error(), "\n") != 5 || !strings.Contains(err.Error(), "tcp "+udp.LocalAddr().String()) {
		t.Errorf("Check of a closed port: %v", err)
	}
}

// TestCheckFindsMistakes runs Check against servers with one mistake each, those that were seen to
// break clients. The server without one passes, so each row fails for its mistake alone.
func TestCheckFindsMistakes(t *testing.T) {
	negative := func(m *dns.Msg) bool { return len(m.Answer) == 0 }
	for name, c := range map[string]struct {
		mistake func(*dns.Msg)
		want    string
	}{
		"none":             {func(*dns.Msg) {}, ""},
		"no SOA":           {func(m *dns.Msg) { m.Ns = nil }, "0 authority records, want one SOA"},
		"two SOAs":         {func(m *dns.Msg) { m.Ns = append(m.Ns, m.Ns...) }, "2 authority records"},
		"NS first":         {func(m *dns.Msg) { m.Ns = []dns.RR{record("min.internal. 5 IN NS a.min.internal.")} }, "authority of type NS"},
		"SOA of the root":  {func(m *dns.Msg) { m.Ns = []dns.RR{record(". 5 IN SOA . . 1 5 5 5 5")} }, `SOA of "."`},
		"SOA TTL":          {func(m *dns.Msg) { m.Ns = []dns.RR{record("min.internal. 60 IN SOA . . 1 5 5 5 5")} }, "SOA TTL 60"},
		"SOA minimum":      {func(m *dns.Msg) { m.Ns = []dns.RR{record("min.internal. 5 IN SOA . . 1 5 5 5 60")} }, "minimum 60"},
		"AAAA is NXDOMAIN": {func(m *dns.Msg) { m.Rcode = dns.RcodeNameError }, "NXDOMAIN, want NOERROR"},
		"unknown is empty": {func(m *dns.Msg) { m.Rcode = dns.RcodeSuccess }, "NOERROR, want NXDOMAIN"},
		"REFUSED":          {func(m *dns.Msg) { m.Rcode = dns.RcodeRefused }, "REFUSED, want"},
		"no AA":            {func(m *dns.Msg) { m.Authoritative = false }, "not authoritative"},
		"TC":               {func(m *dns.Msg) { m.Truncated = true }, "truncated"},
		"no OPT":           {func(m *dns.Msg) { m.Extra = nil }, "no OPT"},
		"no question":      {func(m *dns.Msg) { m.Question = nil }, "does not repeat the question"},
		"question folded":  {func(m *dns.Msg) { m.Question[0].Name = strings.ToUpper(m.Question[0].Name) }, "does not repeat the question"},
		"other address": {func(m *dns.Msg) {
			if !negative(m) {
				m.Answer = []dns.RR{record(hostName + " 5 IN A 127.0.64.1")}
			}
		}, "address 127.0.64.1, want 127.0.0.1"},
		"two addresses": {func(m *dns.Msg) { m.Answer = append(m.Answer, m.Answer...) }, "2 answers"},
		"A to AAAA": {func(m *dns.Msg) {
			if negative(m) {
				m.Answer = []dns.RR{record(hostName + " 5 IN A 127.0.0.1")}
			}
		}, "1 answers, want none"},
		"CNAME": {func(m *dns.Msg) {
			if !negative(m) {
				m.Answer = []dns.RR{record(hostName + " 5 IN CNAME a.min.internal.")}
			}
		}, "answer of type CNAME"},
		"TTL": {func(m *dns.Msg) {
			if !negative(m) {
				m.Answer = []dns.RR{record(hostName + " 60 IN A 127.0.0.1")}
			}
		}, "TTL 60"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Check(t.Context(), mistaken(t, c.mistake))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want it to say %q", err, c.want)
			}
		})
	}
}

// mistaken serves right replies, changed by mistake.
func mistaken(t *testing.T, mistake func(*dns.Msg)) string {
	t.Helper()
	udp, tcp := sockets(t)
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, query *dns.Msg) {
		m := new(dns.Msg).SetReply(query)
		m.Authoritative = true
		m.SetEdns0(1232, false)
		switch q := query.Question[0]; {
		case q.Name == hostName && q.Qtype == dns.TypeA:
			m.Answer = []dns.RR{record(hostName + " 5 IN A 127.0.0.1")}
		case q.Name == hostName:
			m.Ns = []dns.RR{record("min.internal. 5 IN SOA . . 1 5 5 5 5")}
		default:
			m.Rcode = dns.RcodeNameError
			m.Ns = []dns.RR{record("min.internal. 5 IN SOA . . 1 5 5 5 5")}
		}
		mistake(m)
		if err := w.WriteMsg(m); err != nil {
			t.Errorf("the test's server: %v", err)
		}
	})
	for _, server := range []*dns.Server{{PacketConn: udp, Handler: handler}, {Listener: tcp, Handler: handler}} {
		started, done := make(chan struct{}), make(chan error, 1)
		server.NotifyStartedFunc = func() { close(started) }
		go func() { done <- server.ActivateAndServe() }()
		<-started
		t.Cleanup(func() { _ = server.Shutdown(); <-done })
	}
	return udp.LocalAddr().String()
}

func record(text string) dns.RR {
	rr, err := dns.NewRR(text)
	if err != nil {
		panic(err)
	}
	return rr
}
