package mac

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/host/hosttest"
	"github.com/gominimal/minhost/verify/fakedarwin"
)

// put writes a file of root's before minhost came.
func (m *mac) put(path, content string) {
	m.t.Helper()
	full := filepath.Join(m.Root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

const strangerPlist = `<?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict><key>Label</key><string>com.example.other</string>` +
	`<key>ProgramArguments</key><array><string>/bin/sleep</string><string>1000</string></array><key>RunAtLoad</key><true/></dict></plist>`

// TestUndo: a Mac that others use too is byte for byte as before: their resolvers, aliases (two of them in
// the range, one with another mask), daemons, disabled labels.
func TestUndo(t *testing.T) {
	for _, release := range []int{13, 15, 26} {
		t.Run(fmt.Sprint(release), func(t *testing.T) {
			m := newMac(t, func(f *fakedarwin.Mac) { f.Release = release })
			m.put("private/etc/resolver/test", "nameserver 127.0.0.1\nport 9253\n")
			m.put("Library/LaunchDaemons/com.example.other.plist", strangerPlist)
			m.put("Library/PrivilegedHelperTools/com.example.tool", "x")
			m.Disable("com.example.gone")
			for addr, mask := range map[string]uint32{"127.0.64.9": 0xff000000, "127.0.64.10": 0xffffffff, "127.0.65.1": 0xffffffff,
				"10.254.254.254": 0xffffff00, "127.0.64.0": 0xffffff00} {
				if err := m.SetAlias(fakedarwin.Alias{Addr: netip.MustParseAddr(addr), Mask: mask}); err != nil {
					t.Fatal(err)
				}
			}
			before := m.snapshot()
			m.install()
			if !m.complete() {
				t.Error("the range is not complete")
			}
			m.Calls()
			m.want(0, m.ada("finalize-install", "--undo", "--yes"))
			if diff := hosttest.Diff(before, m.snapshot()); len(diff) > 0 {
				t.Errorf("undo left: %q", diff)
			}
			m.inOrder(m.Calls(), "dscacheutil -flushcache", "launchctl bootout system/dev.minimal.helper",
				"launchctl bootout system/dev.minimal.resolverd", "launchctl bootout system/dev.minimal.loopback")
			if m.Stalls() > 0 {
				t.Errorf("%d lookups stalled", m.Stalls())
			}
			m.want(0, m.ada("finalize-install", "--undo", "--yes")) // nothing is there any more: 3 and 113 are no errors
		})
	}
}

// inOrder wants these among the calls, in this order.
func (m *mac) inOrder(calls []string, want ...string) {
	m.t.Helper()
	at := 0
	for _, w := range want {
		i := slices.IndexFunc(calls[at:], func(c string) bool { return strings.HasPrefix(c, w) })
		if i < 0 {
			m.t.Errorf("no %q behind call %d of %q", w, at, calls)
			return
		}
		at += i + 1
	}
}

// TestOrder: the answerer is bootstrapped long before the resolver file is there, and every lookup on the
// way is answered or not asked.
func TestOrder(t *testing.T) {
	m := newMac(t, func(f *fakedarwin.Mac) { f.Slow = 10 })
	m.Calls()
	m.install()
	m.inOrder(m.Calls(), "launchctl bootstrap system /Library/LaunchDaemons/dev.minimal.loopback.plist",
		"launchctl bootstrap system /Library/LaunchDaemons/dev.minimal.resolverd.plist",
		"launchctl bootstrap system /Library/LaunchDaemons/dev.minimal.helper.plist", "dscacheutil -flushcache", "killall -HUP mDNSResponder", "scutil --dns")
	if m.Stalls() > 0 {
		t.Errorf("%d lookups stalled", m.Stalls())
	}
	if names := m.ResolverNames(); !slices.Equal(names, []string{"min.internal"}) {
		t.Errorf("names that were in the folder, be it for a moment: %q", names)
	}
	for _, p := range []string{"loopback", "resolverd", "helper"} {
		path := "/Library/LaunchDaemons/dev.minimal." + p + ".plist"
		m.want(0, m.as(0, "/usr/bin/plutil", "-lint", path), "OK")
		if fi, err := os.Stat(filepath.Join(m.Root, path)); err != nil || fi.Mode() != 0o644 {
			t.Errorf("%s: %v %v", path, fi.Mode(), err)
		}
	}
}

// TestUmask: modes do not hang on the umask of whoever installs.
func TestUmask(t *testing.T) {
	m := newMac(t, nil)
	m.want(0, m.as(0, "/bin/sh", "-c", "umask 000; exec "+program+" finalize-install --yes"))
	for path, mode := range map[string]os.FileMode{"Library/LaunchDaemons/dev.minimal.helper.plist": 0o644, "private/etc/resolver/min.internal": 0o644,
		"private/etc/resolver": 0o755, "Library/PrivilegedHelperTools": 0o755, "Library/PrivilegedHelperTools/dev.minimal.minhost": 0o755,
		"Library/Application Support/minhost": 0o755, "Library/Application Support/minhost/journal.json": 0o600, "Library/Application Support/minhost/run": 0o755,
		"Library/Application Support/minhost/run/helper.sock": 0o666, "Library/Application Support/minhost/run/reports.sock": 0o600, "private/var/log/dev.minimal.resolverd.log": 0o644} {
		if fi, err := os.Stat(filepath.Join(m.Root, path)); err != nil || fi.Mode().Perm() != mode {
			t.Errorf("%s: %v %v, want %v", path, fi.Mode(), err, mode)
		}
	}
}
