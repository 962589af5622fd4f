package systemd

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gominimal/minhost/verify/golden"
)

func render(t *testing.T) []Unit {
	t.Helper()
	units, err := Units(DefaultParams("/usr/local/lib/minhost/minhost", "/run/minhost/helper.sock"))
	if err != nil {
		t.Fatal(err)
	}
	return units
}

func TestUnitsGolden(t *testing.T) {
	for _, u := range render(t) {
		golden.Check(t, filepath.Join("testdata", "units", u.Name), u.Content)
		if u.Path != "/etc/systemd/system/"+u.Name {
			t.Errorf("path %s", u.Path)
		}
		if OriginOf(u.Content) != Ours {
			t.Errorf("%s is not recognised as ours", u.Name)
		}
		if !strings.Contains(string(u.Content), "\n[Install]\n") {
			t.Errorf("%s has no [Install]", u.Name)
		}
	}
}

// directives returns the values of a key in a unit, in order.
func directives(u Unit, key string) []string {
	var values []string
	for line := range strings.Lines(string(u.Content)) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok && k == key {
			values = append(values, v)
		}
	}
	return values
}

func unit(t *testing.T, name string) Unit {
	t.Helper()
	for _, u := range render(t) {
		if u.Name == name {
			return u
		}
	}
	t.Fatalf("no unit %s", name)
	return Unit{}
}

// TestUnitsPromises names the lines that safety hangs on, so that a change of a golden alone
// does not lose one.
func TestUnitsPromises(t *testing.T) {
	for _, c := range []struct{ unit, key, value string }{
		{TreeService, "DefaultDependencies", "no"},
		{TreeService, "After", "local-fs.target nftables.service"},
		{TreeService, "Before", "network-pre.target shutdown.target"},
		{TreeService, "Wants", "network-pre.target"},
		{TreeService, "Delegate", "yes"},
		{TreeService, "KillMode", "process"},
		{TreeService, "RefuseManualStop", "yes"},
		{TreeService, "Type", "notify"},
		{TreeService, "ExecStart", "/usr/local/lib/minhost/minhost hold"},
		{HelperService, "Type", "notify"},
		{HelperService, "ExecStart", "/usr/local/lib/minhost/minhost helper"},
		{HelperService, "RuntimeDirectoryPreserve", "yes"},
		{HelperService, "WatchdogSec", "30s"},
		{HelperService, "PartOf", "minhost-tree.service"},
		{TreeService, "Sockets", "minhost-table.socket"},
		{HelperService, "Sockets", "minhost-table.socket"},
		{TableSocket, "ListenNetlink", "netfilter"},
		{TableSocket, "Service", "minhost-helper.service"},
		{TableSocket, "FileDescriptorName", "table"},
		{TableSocket, "RefuseManualStop", "yes"},
		{HelperSocket, "ListenStream", "/run/minhost/helper.sock"},
		{HelperSocket, "SocketMode", "0666"},
		{AnswererService, "DynamicUser", "yes"},
		{AnswererService, "WatchdogSec", "30s"},
		{AnswererService, "CapabilityBoundingSet", ""},
		{AnswererService, "NoNewPrivileges", "yes"},
		{AnswererService, "RestrictAddressFamilies", "AF_UNIX AF_NETLINK"},
		{AnswererService, "ExecStart", "/usr/local/lib/minhost/minhost resolverd --boot-id %b"},
		{AnswererSocket, "FreeBind", "yes"},
		{NamesService, "PartOf", "systemd-resolved.service"},
		{VerifyService, "Type", "exec"},
		{NamesService, "ExecStart", "/usr/local/lib/minhost/minhost names"},
	} {
		if got := directives(unit(t, c.unit), c.key); !slices.Equal(got, []string{c.value}) {
			t.Errorf("%s: %s is %q, want %q", c.unit, c.key, got, c.value)
		}
	}
	want := []string{"127.0.0.1:15353", "127.0.0.1:15354", "[::1]:15354"}
	for _, key := range []string{"ListenDatagram", "ListenStream"} {
		if got := directives(unit(t, AnswererSocket), key); !slices.Equal(got, want) {
			t.Errorf("%s: %q", key, got)
		}
	}
	for _, u := range render(t) {
		if strings.Contains(string(u.Content), "StandardOutput=file") || strings.Contains(string(u.Content), "append:") {
			t.Errorf("%s logs to a file: SELinux refuses that to init (case B48)", u.Name)
		}
	}
}

func TestUnitsRefuse(t *testing.T) {
	for name, change := range map[string]func(*Params){
		"relative program":  func(p *Params) { p.Program = "minhost" },
		"space":             func(p *Params) { p.Program = "/opt/my programs/minhost" },
		"specifier":         func(p *Params) { p.Program = "/opt/%h/minhost" },
		"line break":        func(p *Params) { p.Socket = "/run/x\nExecStart=/bin/sh" },
		"unclean":           func(p *Params) { p.Dir = "/etc/../tmp" },
		"answerer wildcard": func(p *Params) { p.Answerer = []netip.AddrPort{netip.MustParseAddrPort("0.0.0.0:15353")} },
		"answerer no port":  func(p *Params) { p.Answerer = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")} },
	} {
		p := DefaultParams("/usr/bin/minhost", "/run/minhost/helper.sock")
		change(&p)
		if _, err := Units(p); err == nil {
			t.Errorf("%s: rendered", name)
		}
	}
}

func TestOriginOf(t *testing.T) {
	u := string(unit(t, HelperService).Content)
	for name, c := range map[string]struct {
		content string
		want    Origin
	}{
		"as written":     {u, Ours},
		"line added":     {u + "Nice=5\n", Edited},
		"line changed":   {strings.Replace(u, "Restart=always", "Restart=no", 1), Edited},
		"sum taken out":  {Marker + "\n" + u[strings.Index(u, "[Unit]"):], Edited},
		"marker removed": {u[strings.Index(u, "\n")+1:], Stranger},
		"marker second":  {"\n" + u, Stranger},
		"empty":          {"", Stranger},
	} {
		if got := OriginOf([]byte(c.content)); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestAnalyze lets systemd itself read the units: a misspelt directive or an ordering cycle prints
// a line. It needs no running systemd.
func TestAnalyze(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("SKIP systemd-analyze: not installed")
	}
	dir := t.TempDir()
	// The program must exist and be executable for verify to be silent.
	program := filepath.Join(dir, "minhost")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := DefaultParams(program, "/run/minhost/helper.sock")
	p.Dir = dir
	units, err := Units(p)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"verify", "--man=no"}
	for _, u := range units {
		if err := os.WriteFile(u.Path, u.Content, 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, u.Path)
	}
	out, err := exec.Command(analyze, args...).CombinedOutput()
	if err != nil || len(out) != 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	bad := filepath.Join(dir, "minhost-bad.service")
	if err := os.WriteFile(bad, []byte("[Service]\nExecStart="+program+"\nKillMod=process\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, _ := exec.Command(analyze, "verify", "--man=no", bad).CombinedOutput(); len(out) == 0 {
		t.Error("systemd-analyze verify has nothing to say about a misspelt directive: this test cannot fail")
	}
}
