package client_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
)

// rootfs is a root file system beside a folder that nobody may write to.
type rootfs struct {
	t              *testing.T
	dir, elsewhere string
}

func newRootfs(t *testing.T) rootfs {
	t.Helper()
	r := rootfs{t, t.TempDir(), t.TempDir()}
	r.put(filepath.Join(r.elsewhere, "host.conf"), "nameserver 192.0.2.53\n")
	r.put(filepath.Join(r.elsewhere, "victim"), "theirs\n")
	return r
}

func (r rootfs) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r rootfs) put(path, text string) {
	r.t.Helper()
	r.must(os.MkdirAll(filepath.Dir(path), 0o755))
	r.must(os.WriteFile(path, []byte(text), 0o600))
}

func (r rootfs) etc(name string) string { return filepath.Join(r.dir, "etc", name) }

func (r rootfs) write(p api.NetPlan) error {
	return client.Rootfs{Dir: r.dir, HostResolvConf: filepath.Join(r.elsewhere, "host.conf")}.Write(p)
}

// has wants a regular file of its own, readable for all, with this text.
func (r rootfs) has(name, want string) {
	r.t.Helper()
	got, err := os.ReadFile(r.etc(name))
	if err != nil || string(got) != want {
		r.t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		return
	}
	info, err := os.Lstat(r.etc(name))
	r.must(err)
	if st := info.Sys().(*syscall.Stat_t); info.Mode() != 0o644 || st.Nlink != 1 {
		r.t.Errorf("%s: mode %v, %d links", name, info.Mode(), st.Nlink)
	}
	if victim, err := os.ReadFile(filepath.Join(r.elsewhere, "victim")); err != nil || string(victim) != "theirs\n" {
		r.t.Errorf("a file elsewhere: %q, %v", victim, err)
	}
	if all, _ := filepath.Glob(r.etc(".*")); len(all) > 0 {
		r.t.Errorf("left over: %v", all)
	}
}

func servers(s ...string) api.NetPlan {
	return api.NetPlan{Resolver: api.ResolverNameservers, Nameservers: s}
}

const ours = "# minhost: the servers of this box\n"

// TestNameservers: whatever is there before, a new file takes the name, and nothing else changes.
func TestNameservers(t *testing.T) {
	for name, before := range map[string]func(rootfs){
		"nothing":  func(rootfs) {},
		"a file":   func(r rootfs) { r.put(r.etc("resolv.conf"), "nameserver 192.0.2.1\n") },
		"no write": func(r rootfs) { r.put(r.etc("resolv.conf"), "x"); r.must(os.Chmod(r.etc("resolv.conf"), 0o400)) },
		"a hard link": func(r rootfs) {
			r.must(os.MkdirAll(r.etc("."), 0o755))
			r.must(os.Link(filepath.Join(r.elsewhere, "victim"), r.etc("resolv.conf")))
		},
		"a link to elsewhere": func(r rootfs) {
			r.must(os.MkdirAll(r.etc("."), 0o755))
			r.must(os.Symlink(filepath.Join(r.elsewhere, "victim"), r.etc("resolv.conf")))
		},
		"a link inside": func(r rootfs) {
			r.put(filepath.Join(r.dir, "run/stub"), "theirs")
			r.must(os.MkdirAll(r.etc("."), 0o755))
			r.must(os.Symlink("../run/stub", r.etc("resolv.conf")))
		},
		"a pipe": func(r rootfs) {
			r.must(os.MkdirAll(r.etc("."), 0o755))
			r.must(syscall.Mkfifo(r.etc("resolv.conf"), 0o644))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRootfs(t)
			before(r)
			for range 2 {
				r.must(r.write(servers("127.0.0.1", "2001:db8::53", "fe80::1%eth0")))
				r.has("resolv.conf", ours+"nameserver 127.0.0.1\nnameserver 2001:db8::53\nnameserver fe80::1%eth0\n")
			}
			r.must(r.write(servers()))
			r.has("resolv.conf", ours)
		})
	}
}

// TestResolverCannot: what the format cannot say is an error with the reason, and changes nothing.
func TestResolverCannot(t *testing.T) {
	for _, c := range []struct{ server, says string }{
		{"127.0.0.1:15353", "no ports"}, {"[::1]:5353", "no ports"}, {"dns.example", "not an address"}, {"", "not an address"},
		{"192.0.2.1\nsearch evil", "not an address"}, {"fe80::1%a\nb", "not an address"}, {"fe80::1%a b", "not an address"},
	} {
		r := newRootfs(t)
		r.put(r.etc("resolv.conf"), "old")
		if err := r.write(servers("192.0.2.1", c.server)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want %q", c.server, err, c.says)
		}
		if got, _ := os.ReadFile(r.etc("resolv.conf")); string(got) != "old" {
			t.Errorf("%q: the file is %q", c.server, got)
		}
	}
	r := newRootfs(t)
	if err := r.write(servers("192.0.2.1:53", "[2001:db8::1]:53")); err != nil {
		t.Errorf("port 53 need not be said: %v", err)
	}
	r.has("resolv.conf", ours+"nameserver 192.0.2.1\nnameserver 2001:db8::1\n")
	if err := r.write(servers("192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4")); err == nil || !strings.Contains(err.Error(), "takes 3") {
		t.Errorf("four servers: %v", err)
	}
	if err := r.write(api.NetPlan{Resolver: "bridge"}); err == nil {
		t.Error("an unknown resolver was taken")
	}
}

// TestHostResolver: the host's servers only where the root file system has none.
func TestHostResolver(t *testing.T) {
	link := func(to string) func(rootfs) {
		return func(r rootfs) {
			r.put(r.etc("real.conf"), "nameserver 192.0.2.7\n")
			r.must(os.Symlink(strings.ReplaceAll(to, "ELSEWHERE", r.elsewhere), r.etc("resolv.conf")))
		}
	}
	for name, c := range map[string]struct {
		before func(rootfs)
		keeps  bool
	}{
		"nothing":                   {func(rootfs) {}, false},
		"an empty file":             {func(r rootfs) { r.put(r.etc("resolv.conf"), "\n") }, false},
		"a file":                    {func(r rootfs) { r.put(r.etc("resolv.conf"), "nameserver 192.0.2.7\n") }, true},
		"a link":                    {link("real.conf"), true},
		"an absolute link":          {link("/etc/real.conf"), true},
		"a link above the root":     {link("../../../etc/real.conf"), true},
		"a dangling link":           {link("/run/systemd/resolve/stub-resolv.conf"), false},
		"a link to itself":          {link("resolv.conf"), false},
		"a link to a host's file":   {link("ELSEWHERE/victim"), false},
		"a link to the root itself": {link("/"), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRootfs(t)
			c.before(r)
			r.must(r.write(api.NetPlan{Resolver: api.ResolverHost}))
			if !c.keeps {
				r.has("resolv.conf", "nameserver 192.0.2.53\n")
				return
			}
			if got, err := os.ReadFile(r.etc("real.conf")); err == nil && string(got) != "nameserver 192.0.2.7\n" {
				t.Errorf("the file behind the link is %q", got)
			}
			if info, err := os.Lstat(r.etc("resolv.conf")); err != nil || strings.Contains(name, "link") && info.Mode()&os.ModeSymlink == 0 {
				t.Errorf("it was replaced: %v, %v", info, err)
			}
		})
	}
	r := newRootfs(t)
	r.must(r.write(api.NetPlan{Resolver: api.ResolverNone}))
	if _, err := os.Stat(r.etc(".")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("resolver none wrote something: %v", err)
	}
}

// TestHosts: the plan's lines, and everybody else's as they were.
func TestHosts(t *testing.T) {
	plan := api.NetPlan{Resolver: api.ResolverNone, Hosts: []api.HostEntry{{Name: "host.min.internal", Address: "127.0.0.1"}, {Name: "six", Address: "2001:db8::1"}}}
	lines := "127.0.0.1\thost.min.internal\n2001:db8::1\tsix\n"
	r := newRootfs(t)
	r.must(r.write(plan))
	r.has("hosts", "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"+lines)
	for name, c := range map[string][2]string{
		"kept":         {"# mine\n127.0.1.1   me  # host.min.internal\n\n", "# mine\n127.0.1.1   me  # host.min.internal\n\n"},
		"no last line": {"127.0.0.1 localhost", "127.0.0.1 localhost\n"},
		"another":      {"10.0.0.1 a HOST.min.internal b # c\n10.0.0.2 six\n", "10.0.0.1\ta b # c\n"},
	} {
		r.put(r.etc("hosts"), c[0])
		for range 2 {
			r.must(r.write(plan))
			r.has("hosts", c[1]+lines)
		}
		_ = name
	}
	for _, e := range []api.HostEntry{{Name: "a b", Address: "192.0.2.1"}, {Name: "a\nb", Address: "192.0.2.1"}, {Name: "", Address: "192.0.2.1"}, {Name: "a", Address: "x"}, {Name: "a#", Address: "192.0.2.1"}} {
		if err := r.write(api.NetPlan{Resolver: api.ResolverNone, Hosts: []api.HostEntry{e}}); err == nil {
			t.Errorf("%+v was written", e)
		}
	}
}

// TestEscapes: no link leads a write out of the root file system.
func TestEscapes(t *testing.T) {
	for _, to := range []string{"ELSEWHERE", "../../../../../../../../../ELSEWHERE", "loop"} {
		r := newRootfs(t)
		to = filepath.Clean(strings.Replace(to, "ELSEWHERE", r.elsewhere, 1))
		r.must(os.Symlink(to, filepath.Join(r.dir, "etc")))
		r.must(os.Symlink("etc", filepath.Join(r.dir, "loop")))
		if err := r.write(servers("192.0.2.1")); err == nil {
			t.Errorf("etc is a link to %s, and it was written", to)
		}
		if all, err := os.ReadDir(r.elsewhere); err != nil || len(all) != 2 {
			t.Errorf("elsewhere are %v, %v", all, err)
		}
	}
	r := newRootfs(t) // one that stays inside is followed
	r.must(os.MkdirAll(filepath.Join(r.dir, "usr/etc"), 0o755))
	r.must(os.Symlink("usr/etc", filepath.Join(r.dir, "etc")))
	r.must(r.write(servers("192.0.2.1")))
	r.has("resolv.conf", ours+"nameserver 192.0.2.1\n")
}
