package resolverd

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gominimal/minhost/resolverd/portholder"
)

// TestAdoptRefuses: what is not a socket of ours is named and refused, and nothing stays open.
func TestAdoptRefuses(t *testing.T) {
	host, box, other := newPair(t, "127.0.0.1"), newPair(t, "127.0.0.1"), newPair(t, "127.0.0.1")
	wild, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4zero})
	if err != nil {
		t.Fatal(err)
	}
	defer wild.Close()
	unix, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close()
	plain, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	endpoints := Config{Port: host.addr.Port(), BoxPort: box.addr.Port()}.endpoints()
	for name, c := range map[string]struct {
		files []*os.File
		want  string
	}{
		"other port":  {append(host.files(t), fileOf(t, other.udp)), "not an address of the answerer, want one of 127.0.0.1:"},
		"wildcard":    {append(host.files(t), fileOf(t, wild)), "handed-over udp socket 0.0.0.0:"},
		"unix socket": {append(host.files(t), fileOf(t, unix)), "not an address of the answerer"},
		"plain file":  {append(host.files(t), plain), syscall.ENOTSOCK.Error()},
		"twice":       {append(host.files(t), fileOf(t, host.tcp)), "handed over twice"},
		"no TCP":      {[]*os.File{fileOf(t, host.udp)}, "no tcp socket for " + host.addr.String()},
		"no UDP":      {[]*os.File{fileOf(t, host.tcp)}, "no udp socket for " + host.addr.String()},
		"only boxes'": {box.files(t), "no udp socket for " + host.addr.String()},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := adopt(c.files, endpoints, (&logLines{}).logger())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want it to say %q", err, c.want)
			}
			if len(got.udp)+len(got.tcp) > 0 {
				t.Error("sockets returned with an error")
			}
			for _, f := range c.files {
				if _, err := f.Stat(); !errors.Is(err, os.ErrClosed) {
					t.Errorf("%s stays open", f.Name())
				}
			}
		})
	}
}

// TestAdoptWithoutBoxes: a manager that hands over the host view alone is served, and said so.
func TestAdoptWithoutBoxes(t *testing.T) {
	host := newPair(t, "127.0.0.1")
	log := &logLines{}
	got, err := adopt(host.files(t), Config{Port: host.addr.Port(), BoxPort: 1}.endpoints(), log.logger())
	if err != nil {
		t.Fatal(err)
	}
	defer got.close()
	if len(got.udp) != 1 || len(got.tcp) != 1 || got.udp[0].view != HostView {
		t.Errorf("%v", got.names())
	}
	if n := log.count("handed over no socket"); n != 4 {
		t.Errorf("%d warnings for UDP and TCP of 127.0.0.1:1 and [::1]:1", n)
	}
}

// TestInheritedIsForThisProcess: variables meant for another process are not taken.
func TestInheritedIsForThisProcess(t *testing.T) {
	t.Setenv("LISTEN_PID", "1")
	t.Setenv("LISTEN_FDS", "2")
	if files := Inherited(); files != nil {
		t.Errorf("took %d descriptors", len(files))
	}
	if _, still := os.LookupEnv("LISTEN_FDS"); still {
		t.Error("LISTEN_FDS stays in the environment of what we start")
	}
}

// freePort is a port that was free for UDP and TCP a moment ago.
func freePort(t *testing.T) uint16 {
	p := newPair(t, "127.0.0.1")
	p.udp.Close()
	p.tcp.Close()
	return p.addr.Port()
}

// TestBind: own sockets are on exactly the three addresses, never a wildcard.
func TestBind(t *testing.T) {
	host, box := newPair(t, "127.0.0.1"), newPair(t, "127.0.0.1")
	for _, held := range []interface{ Close() error }{host.udp, host.tcp, box.udp, box.tcp} {
		held.Close()
	}
	cfg := Config{Port: host.addr.Port(), BoxPort: box.addr.Port()}
	got, err := bind(cfg.endpoints(), (&logLines{}).logger())
	if err != nil {
		t.Fatal(err)
	}
	defer got.close()
	for _, u := range got.udp {
		if !localAddr(u.LocalAddr()).Addr().IsLoopback() {
			t.Errorf("bound %s", u.LocalAddr())
		}
	}
	want := len(cfg.endpoints())
	if ln, err := net.Listen("tcp6", "[::1]:0"); err != nil {
		want-- // no IPv6 here
	} else {
		ln.Close()
	}
	if len(got.udp) != want || len(got.tcp) != want {
		t.Errorf("bound %v", got.names())
	}
}

// TestPortTaken: the error names the address and the command that shows the holder, and what was
// bound before is given back.
func TestPortTaken(t *testing.T) {
	for _, network := range []string{"udp", "tcp"} {
		t.Run(network, func(t *testing.T) {
			host, taken := newPair(t, "127.0.0.1"), newPair(t, "127.0.0.1")
			host.udp.Close()
			host.tcp.Close()
			if network == "udp" {
				taken.tcp.Close()
			} else {
				taken.udp.Close()
			}
			_, err := bind(Config{Port: host.addr.Port(), BoxPort: taken.addr.Port()}.endpoints(), (&logLines{}).logger())
			if !errors.Is(err, syscall.EADDRINUSE) {
				t.Fatalf("bind: %v", err)
			}
			if !strings.HasPrefix(err.Error(), "listen "+network+" "+taken.addr.String()+": ") ||
				!strings.HasSuffix(err.Error(), ", "+portholder.Remedy(network, taken.addr)) {
				t.Errorf("error %q", err)
			}
			again, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(host.addr))
			if err != nil {
				t.Fatalf("the first socket was not given back: %v", err)
			}
			again.Close()
		})
	}
}

// TestOptionalAddress: an address that the host does not have stops nothing where it is optional.
func TestOptionalAddress(t *testing.T) {
	missing := endpoint{addr: netip.MustParseAddrPort("198.51.100.7:15353")}
	log := &logLines{}
	got, err := bind([]endpoint{missing}, log.logger())
	if err != nil || len(got.udp) > 0 || log.count("not on this host") != 1 {
		t.Errorf("optional: %v, %v", got.names(), err)
	}
	missing.required = true
	if _, err := bind([]endpoint{missing}, log.logger()); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("required: %v", err)
	}
}
