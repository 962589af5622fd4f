package systemd

import (
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"
)

func fakeEnv(files map[string]string) Env {
	return Env{
		Exists: func(p string) bool { _, ok := files[p]; return ok },
		ReadFile: func(p string) ([]byte, error) {
			if c, ok := files[p]; ok {
				return []byte(c), nil
			}
			return nil, fs.ErrNotExist
		},
	}
}

func TestDetect(t *testing.T) {
	sample := func(name string) string {
		b, err := os.ReadFile("testdata/os-release-" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for name, c := range map[string]struct {
		files     map[string]string
		kind      Kind
		reason    string
		generated bool
	}{
		"systemd":             {map[string]string{"/run/systemd/system": "", "/proc/1/comm": "systemd\n"}, Systemd, "/run/systemd/system exists", false},
		"container of debian": {map[string]string{"/usr/bin/systemctl": "", "/proc/1/comm": "sh\n"}, Standalone, "PID 1 is sh, not systemd", false},
		"systemd installed, folder of a stopped one missing": {map[string]string{"/run/systemd": "", "/proc/1/comm": "tini\n"}, Standalone, "PID 1 is tini, not systemd", false},
		"alpine":                   {map[string]string{"/run/openrc": "", "/proc/1/comm": "init\n", "/etc/os-release": sample("alpine")}, OpenRC, "/run/openrc exists and PID 1 is init", false},
		"debian with sysvinit":     {map[string]string{"/etc/inittab": "", "/etc/init.d/rc": "", "/proc/1/comm": "init\n"}, SysVinit, "PID 1 is init, with /etc/inittab and /etc/init.d/rc", false},
		"busybox's init":           {map[string]string{"/etc/inittab": "", "/proc/1/comm": "init\n"}, Standalone, "PID 1 is init, not systemd", false},
		"sysvinit in a container":  {map[string]string{"/etc/inittab": "", "/etc/init.d/rc": "", "/proc/1/comm": "sh\n"}, Standalone, "PID 1 is sh, not systemd", false},
		"nixos":                    {map[string]string{"/run/systemd/system": "", "/etc/os-release": sample("nixos")}, Systemd, "/run/systemd/system exists", true},
		"nixos by its marker file": {map[string]string{"/run/systemd/system": "", "/etc/NIXOS": ""}, Systemd, "/run/systemd/system exists", true},
		"os-release in /usr only":  {map[string]string{"/run/systemd/system": "", "/usr/lib/os-release": sample("nixos")}, Systemd, "/run/systemd/system exists", true},
		"PID 1 hidden":             {map[string]string{}, Standalone, "PID 1 is unknown, not systemd", false},
		"PID 1 with escapes":       {map[string]string{"/proc/1/comm": "a\x1b[2Jb\n"}, Standalone, "PID 1 is a[2Jb, not systemd", false},
	} {
		m := Detect(fakeEnv(c.files))
		if m.Kind != c.kind || m.Reason != c.reason || (m.Generated != "") != c.generated {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

func TestParseOSRelease(t *testing.T) {
	for name, want := range map[string]OSRelease{
		"alpine":     {ID: "alpine", VersionID: "3.20.3"},
		"nixos":      {ID: "nixos", VersionID: "24.11"},
		"silverblue": {ID: "fedora", VersionID: "41", VariantID: "silverblue", OSTree: true},
		"steamos":    {ID: "steamos", VersionID: "3.6.22", VariantID: "steamdeck", IDLike: []string{"arch"}},
		"ubuntu2204": {ID: "ubuntu", VersionID: "22.04", IDLike: []string{"debian"}},
		"made-up":    {ID: "x$y", VersionID: `a"b`},
	} {
		text := "# ID=comment\nID=\"x\\$y\"\nVERSION_ID='a\"b'\nVARIANT\n"
		if name != "made-up" {
			b, err := os.ReadFile("testdata/os-release-" + name)
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
		if got := ParseOSRelease(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func TestParseShow(t *testing.T) {
	text := strings.Join([]string{
		"MainPID=12", "Result=success", "Id=a.service", "LoadState=loaded", "ActiveState=active", "UnitFileState=enabled", "NeedDaemonReload=no",
		"", "Id=b.socket", "LoadState=not-found", "ActiveState=inactive", "UnitFileState=", "NeedDaemonReload=yes", "",
	}, "\n")
	want := map[string]Status{
		"a.service": {Active: "active", File: "enabled", Load: "loaded", MainPID: "12", Result: "success"},
		"b.socket":  {Active: "inactive", Load: "not-found", Stale: true},
	}
	if got := parseShow(text); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}
