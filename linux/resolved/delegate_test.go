package resolved

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/hosttest"
)

func right() *Delegate {
	p := DefaultParams()
	return &Delegate{Servers: []netip.AddrPort{p.Answerer}, Domains: []Domain{{p.Zone, true}}, DNSOverTLS: "no"}
}

// TestNamesByDelegate: an upgrade to 258 takes the link away, a downgrade makes it again, each without a hand.
func TestNamesByDelegate(t *testing.T) {
	s, h := lab()
	apply(t, s)
	k := keeping{budget: budget{most: 100, within: time.Minute}}
	look := func(want string, link bool) {
		t.Helper()
		line, broken, err := s.hold(t.Context(), &k, time.Time{})
		if err != nil || broken != "" || !strings.HasPrefix(line, want) || (h.link != nil) != link {
			t.Fatalf("%q, broken %q, link %v, %v; want %q, %v", line, broken, h.link, err, want, link)
		}
	}
	look("programs that use glibc", true)
	h.old, h.file = false, right()
	probe(t, s, installer.Drifted, "link min0 is there beside the delegate")
	look("by a delegate; programs", false)
	sets := len(h.sets)
	look("by a delegate", false)
	probe(t, s, installer.Satisfied, "by a delegate")
	apply(t, s)
	h.servers = nil // a delegate is no link: FallbackDNS= is no matter
	probe(t, s, installer.Satisfied, "by a delegate")
	h.file = nil
	obs, err := s.Probe(t.Context())
	if err != nil || obs.State != installer.Blocked || obs.Next != "systemctl restart systemd-resolved" {
		t.Errorf("FallbackDNS= and a delegate that is not read yet: %s, next %q, %v", obs.State, obs.Next, err)
	}
	h.servers, h.file = newFakeHost().servers, right()
	h.link = &Link{Index: 3, Up: true} // somebody's: of no interest
	probe(t, s, installer.Satisfied, "by a delegate")
	look("by a delegate", true)
	apply(t, s)
	h.link = nil
	h.answers = false
	probe(t, s, installer.Drifted, "connection refused")
	h.answers, h.old = true, true
	probe(t, s, installer.Absent, "no link min0")
	if len(h.sets) != sets {
		t.Error("a link was configured beside a delegate")
	}
	if _, broken, err := s.hold(t.Context(), &k, time.Time{}); err != nil || broken != "no link min0" || h.link == nil {
		t.Errorf("downgraded: put right %q, link %v, %v", broken, h.link, err)
	}
}

// TestNamesApplyDelegate: apply takes our link away where a delegate is there, and starts the keeper.
func TestNamesApplyDelegate(t *testing.T) {
	s, h := lab()
	k := &keeper{h: h}
	s.Keeper = k
	apply(t, s)
	h.old, h.file = false, right()
	probe(t, s, installer.Drifted, "beside the delegate")
	k.active = false
	apply(t, s)
	if h.link != nil || !k.active {
		t.Errorf("link %v, keeper %v", h.link, k.active)
	}
	k.active = false
	probe(t, s, installer.Drifted, "nobody keeps the names")
	h.answers, s.Settle = false, 50*time.Millisecond
	if err := s.Apply(t.Context(), &installer.Record{}); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("apply with a dead answerer: %v", err)
	}
}

// TestNamesOtherDelegate: the link does the work where the delegate is not what our file says.
func TestNamesOtherDelegate(t *testing.T) {
	for name, change := range map[string]func(*Delegate){
		"default route":     func(d *Delegate) { d.DefaultRoute = true },
		"other server":      func(d *Delegate) { d.Servers = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:53")} },
		"no domain":         func(d *Delegate) { d.Domains = nil },
		"search domain":     func(d *Delegate) { d.Domains[0].RoutingOnly = false },
		"TLS, and no other": func(d *Delegate) { d.DNSOverTLS = "yes" },
	} {
		s, h := lab()
		h.old, h.file = false, right()
		change(h.file)
		probe(t, s, installer.Absent, "no link min0")
		apply(t, s)
		t.Log(name)
		probe(t, s, installer.Satisfied, "programs that use glibc")
		if h.link == nil {
			t.Errorf("%s: no link", name)
		}
	}
}

// loader is a resolved that runs.
type loader struct {
	fakeHost
	root string
}

func delegateLab(t *testing.T) (*DelegateStep, *loader) {
	t.Helper()
	root := t.TempDir()
	if err := errors.Join(os.MkdirAll(root+"/etc/systemd", 0o755), os.MkdirAll(root+"/usr/lib/systemd", 0o755),
		os.WriteFile(root+"/usr/lib/systemd/systemd-resolved", nil, 0o755)); err != nil {
		t.Fatal(err)
	}
	disk, err := host.OpenDisk(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { disk.Close() })
	s := NewDelegateStep(disk, DBus{}, DefaultParams())
	f := &loader{fakeHost{running: true}, root}
	s.Bus = f
	return s, f
}

func delegateIs(t *testing.T, s *DelegateStep, state installer.State, detail string) {
	t.Helper()
	if obs, err := s.Probe(t.Context()); err != nil || obs.State != state || !strings.Contains(obs.Detail, detail) {
		t.Fatalf("%s %q, %v; want %s, %q", obs.State, obs.Detail, err, state, detail)
	}
}

// TestDelegateStep: written for every resolved, and read by one that starts again.
func TestDelegateStep(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP root: the file is root's")
	}
	for name, c := range map[string]struct {
		running, old bool
		detail       string
	}{"258": {true, false, "when it starts again"}, "257": {true, true, "as wanted"}, "not running": {false, false, "as wanted"}} {
		t.Run(name, func(t *testing.T) {
			s, f := delegateLab(t)
			f.running, f.old = c.running, c.old
			before := hosttest.Snapshot(f.root)
			delegateIs(t, s, installer.Absent, "")
			var rec installer.Record
			if err := s.Apply(t.Context(), &rec); err != nil {
				t.Fatal(err)
			}
			delegateIs(t, s, installer.Satisfied, c.detail)
			b, err := os.ReadFile(f.root + "/etc/systemd/dns-delegate.d/minhost.dns-delegate")
			if want := marker + "[Delegate]\nDNS=127.0.0.1:15353\nDomains=~min.internal\nDefaultRoute=no\n"; err != nil || string(b) != want {
				t.Errorf("%q, %v", b, err)
			}
			f.file = right()
			delegateIs(t, s, installer.Satisfied, "as wanted")
			if err := s.Undo(t.Context(), rec); err != nil {
				t.Errorf("undo: %v", err)
			}
			if diff := hosttest.Diff(before, hosttest.Snapshot(f.root)); len(diff) > 0 {
				t.Errorf("left over: %q", diff)
			}
		})
	}
}

// TestDelegateStepOthers: what is not as our file says, and who made it so.
func TestDelegateStepOthers(t *testing.T) {
	s, f := delegateLab(t)
	if s.Required() || s.Lifetime() != installer.Persistent {
		t.Error("required, or not persistent")
	}
	path := f.root + s.Params.DelegateFile().Path
	if err := errors.Join(os.MkdirAll(f.root+"/etc/systemd/dns-delegate.d", 0o755), os.WriteFile(path, []byte("[Delegate]\nDNS=10.0.0.1\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // the folders above are root's
		delegateIs(t, s, installer.Foreign, "not minhost's")
	}
	if err := s.Apply(t.Context(), &installer.Record{}); err == nil {
		t.Error("written over somebody's file")
	}
	if err := os.Remove(f.root + "/usr/lib/systemd/systemd-resolved"); err != nil {
		t.Fatal(err)
	}
	delegateIs(t, s, installer.Satisfied, "no systemd-resolved")
	if os.Geteuid() != 0 {
		return // the file is root's
	}
	s, f = delegateLab(t)
	if err := s.Apply(t.Context(), &installer.Record{}); err != nil {
		t.Fatal(err)
	}
	f.file = right()
	f.file.DefaultRoute = true
	delegateIs(t, s, installer.Foreign, "default route")
	f.file = right()
	f.file.DNSOverTLS = "yes"
	delegateIs(t, s, installer.Satisfied, "the link does it")
}

// TestDBusDelegate: the shapes are those of systemd 262, which TestDelegate of the cells asks.
func TestDBusDelegate(t *testing.T) {
	address := startBus(t)
	bus := DBus{Open: func(ctx context.Context) (*dbus.Conn, error) { return dbus.Connect(address, dbus.WithContext(ctx)) }}
	conn := connect(t, address)
	f := serveFake(t, conn)
	if _, err := bus.Delegate(t.Context(), delegateID); !errors.Is(err, ErrNoDelegates) {
		t.Errorf("257: %v", err)
	}
	methods := f.methods()
	methods["GetDelegate"] = func(name string) (dbus.ObjectPath, *dbus.Error) {
		if name != "minhost" {
			return "/", dbus.NewError("org.freedesktop.resolve1.NoSuchDelegate", []any{"not known"})
		}
		return resolvePath + "/dns_delegate/minhost", nil
	}
	f.manager["DNSOverTLS"] = dbus.MakeVariant("no")
	properties := map[string]dbus.Variant{
		"DNS":          dbus.MakeVariant([]wireServer{{0, 2, []byte{127, 0, 0, 1}, 15353, ""}}),
		"Domains":      dbus.MakeVariant([]wireDomain{{"min.internal", true}}),
		"DefaultRoute": dbus.MakeVariant(false),
	}
	get := func(iface, name string) (dbus.Variant, *dbus.Error) { return properties[name], nil }
	if err := errors.Join(conn.ExportMethodTable(methods, resolvePath, managerIface),
		conn.ExportMethodTable(map[string]any{"Get": get}, resolvePath+"/dns_delegate/minhost", "org.freedesktop.DBus.Properties")); err != nil {
		t.Fatal(err)
	}
	if _, err := bus.Delegate(t.Context(), "other"); !errors.Is(err, ErrNoDelegate) {
		t.Errorf("another: %v", err)
	}
	d, err := bus.Delegate(t.Context(), delegateID)
	if err != nil || DefaultParams().wrong(d) != "" || d.strict() != "" {
		t.Errorf("%+v, %v", d, err)
	}
}
