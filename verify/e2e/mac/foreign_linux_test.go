package mac

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/host/hosttest"
	"github.com/gominimal/minhost/verify/fakedarwin"
)

// TestForeignResolver: a file of somebody else, however broken, is shown and never touched; all the rest
// is installed.
func TestForeignResolver(t *testing.T) {
	m := newMac(t, nil)
	const path = "private/etc/resolver/min.internal"
	for text, want := range map[string]string{
		"nameserver 127.0.0.1\r\nport 15353\r\n": "CR LF",
		"nameserver  127.0.0.1\nport 5353\n":     "mDNSResponder's own",
		"nameserver 127.0.0.1\n":                 "no port",
	} {
		m.put(path, text)
		s := m.states()["names"]
		if !strings.HasPrefix(s, "foreign") || !strings.Contains(s, want) {
			t.Errorf("%q: %s", text, s)
		}
	}
	m.want(0, m.ada("finalize-install", "--yes"), "degraded")
	m.want(0, m.ada("finalize-install", "--undo", "--yes"))
	if b, err := os.ReadFile(filepath.Join(m.Root, path)); err != nil || string(b) == "" {
		t.Errorf("%q %v", b, err)
	}
}

// TestEditedResolver: somebody edited our file: it is theirs from then on, undo says so and leaves it.
func TestEditedResolver(t *testing.T) {
	m := newMac(t, nil)
	m.install()
	path := filepath.Join(m.Root, "private/etc/resolver/min.internal")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	edited := string(b) + "timeout 1\n"
	m.put("private/etc/resolver/min.internal", edited)
	if s := m.states()["names"]; !strings.HasPrefix(s, "foreign") || !strings.Contains(s, "edited") {
		t.Error(s)
	}
	m.want(0, m.ada("finalize-install", "--yes"))
	m.want(1, m.ada("finalize-install", "--undo", "--yes"), "somebody changed it after minhost wrote it")
	if b, _ := os.ReadFile(path); string(b) != edited {
		t.Errorf("%q", b)
	}
	os.Remove(path)
	m.want(0, m.ada("finalize-install", "--undo", "--yes"))
}

// TestResolverFolder: a folder that belongs to a user (another tool made it so) is reported and not
// changed: its owner could replace our file.
func TestResolverFolder(t *testing.T) {
	m := newMac(t, nil)
	m.put("private/etc/resolver/test", "nameserver 127.0.0.1\nport 9253\n")
	if err := os.Chown(filepath.Join(m.Root, "private/etc/resolver"), fakedarwin.Ada, 20); err != nil {
		t.Fatal(err)
	}
	before := hosttest.Snapshot(filepath.Join(m.Root, "private/etc"))
	m.want(0, m.ada("finalize-install", "--yes"), "/private/etc/resolver belongs to uid 501")
	if diff := hosttest.Diff(before, hosttest.Snapshot(filepath.Join(m.Root, "private/etc"))); len(diff) > 0 {
		t.Errorf("%q", diff)
	}
}

// TestForeignJob: a plist under our label that minhost did not write stops everything before it began.
func TestForeignJob(t *testing.T) {
	m := newMac(t, nil)
	m.put("Library/LaunchDaemons/dev.minimal.helper.plist", strangerPlist)
	before := m.snapshot()
	m.want(1, m.ada("finalize-install", "--yes"), "is not minhost's")
	if diff := hosttest.Diff(before, m.snapshot()); len(diff) > 0 {
		t.Errorf("%q", diff)
	}
}

// TestLookupsElsewhere: an encrypted-DNS profile answers in the place of our file: the file is right, and
// verify says which half failed and what to do; a second file for the zone is named.
func TestLookupsElsewhere(t *testing.T) {
	m := newMac(t, nil)
	m.install()
	m.Profile = true
	m.want(0, m.as(0, "/usr/bin/killall", "-HUP", "mDNSResponder"))
	m.want(0, m.root("verify"), "scutil --dns is right", "does not come to it", "encrypted-DNS profile", "exempt min.internal")
	m.want(0, m.ada("verify"), "gets elsewhere", "encrypted-DNS profile") // the host's lookups are root's to hear of
	m.Profile, m.Deaf = false, true
	m.want(0, m.as(0, "/usr/bin/killall", "-HUP", "mDNSResponder"))
	m.want(0, m.root("verify"), "comes to it, and the answer is not taken")
	m.Deaf = false
	m.want(0, m.as(0, "/usr/bin/killall", "-HUP", "mDNSResponder"))
	m.put("private/etc/resolver/min.internal.bak", "nameserver 127.0.0.1\n")
	m.want(0, m.ada("verify"), "beside it, read as resolvers too: /private/etc/resolver/min.internal.bak")
	m.put("private/etc/resolver/other", "domain min.internal\nnameserver 10.0.0.1\n")
	os.Remove(filepath.Join(m.Root, "private/etc/resolver/min.internal.bak"))
	m.Offline = true
	if a := m.Lookup("minhost.min.internal"); a != localhost {
		t.Errorf("offline, the host's own name is %v", a)
	}
	m.Profile = true
	m.want(0, m.as(0, "/usr/bin/killall", "-HUP", "mDNSResponder"))
	m.want(0, m.root("verify"), "another resolver has the domain: 10.0.0.1 port 53")
}

// TestScript: the file route: the script that anybody can print runs as root, and does the same.
func TestScript(t *testing.T) {
	m := newMac(t, func(f *fakedarwin.Mac) { f.NoPrompt = true })
	m.want(1, m.ada("finalize-install", "--yes"), "--show --script")
	r := m.want(0, m.ada("finalize-install", "--show", "--script"))
	for _, want := range []string{"/Library/LaunchDaemons/dev.minimal.resolverd.plist mode 0644", "SockNodeName", "nameserver 127.0.0.1", "shasum"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("the script does not show %q", want)
		}
	}
	m.put("Users/ada/minhost.sh", r.stdout)
	m.want(0, m.as(0, "/bin/sh", "/Users/ada/minhost.sh"))
	m.want(0, m.ada("verify"))
	if s := m.ada("finalize-install", "--json"); s.status != 0 || !strings.Contains(s.stdout, `"finished": true`) {
		t.Errorf("%v", s)
	}
}

// TestKilled: a program that the system kills at its start is told from one that is not there.
func TestKilled(t *testing.T) {
	m := newMac(t, nil)
	m.install()
	m.want(0, m.ada("verify"), "dev.minimal.minhost is minhost v1")
	path := "Library/PrivilegedHelperTools/dev.minimal.minhost"
	os.Remove(filepath.Join(m.Root, path))
	m.want(1, m.ada("verify"), "no such file")
	m.put(path, "#!/bin/sh\nkill -9 $$\n")
	if err := os.Chmod(filepath.Join(m.Root, path), 0o755); err != nil {
		t.Fatal(err)
	}
	m.want(1, m.ada("verify"), "is killed by the system (signal: killed)", "codesign")
}
