package resolved

import (
	"bufio"
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// fakeResolved is systemd-resolved as far as its D-Bus signatures go; the bus checks them.
type fakeResolved struct {
	mu    sync.Mutex
	calls []string
	link  map[string]dbus.Variant
	// manager are the properties of the whole.
	manager map[string]dbus.Variant
	fail    map[string]string // method -> error name
}

const busConfig = `<busconfig><type>session</type><listen>unix:path=SOCKET</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/><allow user="*"/></policy></busconfig>`

// startBus runs a private bus, ended with the test.
func startBus(t *testing.T) string {
	t.Helper()
	daemon, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Skip("SKIP dbus: dbus-daemon is not installed")
	}
	dir := t.TempDir()
	conf := filepath.Join(dir, "bus.conf")
	text := strings.Replace(busConfig, "SOCKET", filepath.Join(dir, "bus"), 1)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(daemon, "--config-file="+conf, "--nofork", "--print-address")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// A test that hangs is ended by a panic, which runs no cleanup: the daemon must not outlive it.
	end := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	t.Cleanup(func() { end.Stop(); cmd.Process.Kill(); cmd.Wait() })
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(address)
}

func connect(t *testing.T, address string) *dbus.Conn {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	// A bus that does not answer must fail the test, not stop it: Hello has no deadline of its own.
	hello := time.AfterFunc(5*time.Second, func() { t.Error("the bus does not answer"); cancel() })
	defer hello.Stop()
	conn, err := dbus.Connect(address, dbus.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func (f *fakeResolved) note(method string, index int32, key string, value any) *dbus.Error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, method)
	if name, ok := f.fail[method]; ok {
		return dbus.NewError(name, []any{"refused"})
	}
	if index != 7 {
		return dbus.NewError("org.freedesktop.resolve1.NoSuchLink", nil)
	}
	f.link[key] = dbus.MakeVariant(value)
	return nil
}

func (f *fakeResolved) methods() map[string]any {
	text := func(method, key string) func(int32, string) *dbus.Error {
		return func(i int32, v string) *dbus.Error { return f.note(method, i, key, v) }
	}
	return map[string]any{
		"GetLink": func(i int32) (dbus.ObjectPath, *dbus.Error) {
			if i != 7 {
				return "/", dbus.NewError("org.freedesktop.resolve1.NoSuchLink", nil)
			}
			return resolvePath + "/link/_37", nil
		},
		"SetLinkDefaultRoute": func(i int32, v bool) *dbus.Error { return f.note("SetLinkDefaultRoute", i, "DefaultRoute", v) },
		"SetLinkDNSEx":        func(i int32, v []wireLinkServer) *dbus.Error { return f.note("SetLinkDNSEx", i, "DNSEx", v) },
		"SetLinkDomains":      func(i int32, v []wireDomain) *dbus.Error { return f.note("SetLinkDomains", i, "Domains", v) },
		"SetLinkDNSOverTLS":   text("SetLinkDNSOverTLS", "DNSOverTLS"),
		"SetLinkDNSSEC":       text("SetLinkDNSSEC", "DNSSEC"),
		"SetLinkLLMNR":        text("SetLinkLLMNR", "LLMNR"),
		"SetLinkMulticastDNS": text("SetLinkMulticastDNS", "MulticastDNS"),
		"RevertLink":          func(i int32) *dbus.Error { return f.note("RevertLink", i, "DNSEx", []wireLinkServer{}) },
		"ResolveHostname": func(_ int32, name string, family int32, _ uint64) ([]wireAddress, string, uint64, *dbus.Error) {
			if name != "host.min.internal" || family != 2 {
				return nil, "", 0, dbus.NewError("org.freedesktop.resolve1.DnsError.NXDOMAIN", []any{"not found"})
			}
			return []wireAddress{{7, 2, []byte{127, 0, 0, 1}}}, name, 1, nil
		},
	}
}

func serveFake(t *testing.T, conn *dbus.Conn) *fakeResolved {
	t.Helper()
	f := &fakeResolved{link: map[string]dbus.Variant{"ScopesMask": dbus.MakeVariant(uint64(1))}, fail: map[string]string{}}
	f.manager = map[string]dbus.Variant{
		"DNSEx":         dbus.MakeVariant([]wireServer{{2, 2, []byte{192, 168, 20, 1}, 0, ""}, {7, 2, []byte{127, 0, 0, 1}, 15353, ""}}),
		"FallbackDNSEx": dbus.MakeVariant([]wireServer{{0, 2, []byte{1, 1, 1, 1}, 0, "cloudflare-dns.com"}}),
	}
	get := func(iface, name string) (dbus.Variant, *dbus.Error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		v, ok := map[string]map[string]dbus.Variant{managerIface: f.manager, linkIface: f.link}[iface][name]
		if !ok {
			return v, dbus.NewError("org.freedesktop.DBus.Error.UnknownProperty", nil)
		}
		return v, nil
	}
	for _, path := range []dbus.ObjectPath{resolvePath, resolvePath + "/link/_37"} {
		if err := conn.ExportMethodTable(map[string]any{"Get": get}, path, "org.freedesktop.DBus.Properties"); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.ExportMethodTable(f.methods(), resolvePath, managerIface); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.RequestName(resolveName, dbus.NameFlagDoNotQueue); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestDBus(t *testing.T) {
	address := startBus(t)
	bus := DBus{Open: func(ctx context.Context) (*dbus.Conn, error) { return dbus.Connect(address, dbus.WithContext(ctx)) }}
	ctx := t.Context()
	if ok, err := bus.Running(ctx); ok || err != nil {
		t.Errorf("nobody there: %v, %v", ok, err)
	}
	f := serveFake(t, connect(t, address))
	if ok, err := bus.Running(ctx); !ok || err != nil {
		t.Errorf("running: %v, %v", ok, err)
	}
	servers, fallback, err := bus.Servers(ctx)
	if err != nil || !slices.Equal(servers, []Server{{2, netip.MustParseAddrPort("192.168.20.1:53")}, {7, netip.MustParseAddrPort("127.0.0.1:15353")}}) ||
		!slices.Equal(fallback, []Server{{0, netip.MustParseAddrPort("1.1.1.1:53")}}) {
		t.Errorf("servers %v, fallback %v, %v", servers, fallback, err)
	}
	p := DefaultParams()
	if err := bus.Set(ctx, 7, p.wanted()); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	calls := slices.Clone(f.calls)
	f.mu.Unlock()
	if calls[0] != "SetLinkDefaultRoute" || calls[len(calls)-1] != "SetLinkDomains" {
		t.Errorf("order %v", calls)
	}
	got, err := bus.Link(ctx, 7)
	if err != nil || !reflect.DeepEqual(got, p.wanted()) || len(p.differs(got)) != 0 {
		t.Errorf("link %+v, %v", got, err)
	}
	if err := bus.Revert(ctx, 7); err != nil {
		t.Errorf("revert: %v", err)
	}
	if got, err := bus.Link(ctx, 7); err != nil || len(got.Servers) != 0 {
		t.Errorf("reverted: %+v, %v", got, err)
	}
	if err := bus.Revert(ctx, 8); !errors.Is(err, ErrNoLink) {
		t.Errorf("revert of an unknown link: %v", err)
	}
	if addrs, err := bus.Resolve(ctx, p.Control); err != nil || !slices.Equal(addrs, []netip.Addr{p.Answer}) {
		t.Errorf("resolve: %v, %v", addrs, err)
	}
	if _, err := bus.Resolve(ctx, "other.example"); err == nil {
		t.Error("resolve: no error for a missing name")
	}
	if err := bus.Set(ctx, 8, p.wanted()); !errors.Is(err, ErrNoLink) {
		t.Errorf("set of an unknown link: %v", err)
	}
	if _, err := bus.Link(ctx, 8); !errors.Is(err, ErrNoLink) {
		t.Errorf("unknown link: %v", err)
	}
	f.mu.Lock()
	f.fail["SetLinkDNSEx"] = "org.freedesktop.resolve1.LinkBusy"
	f.mu.Unlock()
	if err := bus.Set(ctx, 7, p.wanted()); !errors.Is(err, ErrManaged) {
		t.Errorf("managed link: %v", err)
	}
	if err := bus.with(ctx, func(ctx context.Context, conn *dbus.Conn) error {
		return named(conn.Object(resolveName, resolvePath).CallWithContext(ctx, managerIface+".SetLinkNothing", 0).Err, "x")
	}); err == nil || !strings.Contains(err.Error(), "246 is needed") {
		t.Errorf("unknown method: %v", err)
	}
}

func TestDBusNoBus(t *testing.T) {
	bus := DBus{Open: func(ctx context.Context) (*dbus.Conn, error) {
		return dbus.Connect("unix:path=/nonexistent/bus", dbus.WithContext(ctx))
	}}
	if ok, err := bus.Running(t.Context()); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if _, _, err := bus.Servers(t.Context()); err == nil {
		t.Error("servers without a bus")
	}
}
