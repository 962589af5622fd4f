package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/api"
)

// pages is a box that serves on many ports, one that serves nothing and one of somebody else.
func pages() api.ListOut {
	at := func(port int, url string) api.Listener {
		return api.Listener{Protocol: api.ProtocolTCP, Address: "127.0.64.1", Port: port, URL: url}
	}
	return api.ListOut{Leases: []api.LeaseInfo{
		{Lease: "b1", Name: "web", Listeners: []api.Listener{at(3000, "http://web.min.internal:3000"), at(80, "http://web.min.internal"),
			at(5432, ""), at(8443, "https://web.min.internal:8443"), at(9000, "http://127.0.64.1:9000")}},
		{Lease: "b2", Name: "quiet"},
		{Name: "other"},
		{Lease: "b4", Listeners: []api.Listener{{Protocol: api.ProtocolTCP, Address: "0.0.0.0", Port: 8080, URL: "http://127.0.0.1:8080"}, {Protocol: api.ProtocolUDP, Address: "0.0.0.0", Port: 80}}},
	}}
}

// TestOpen: which URL the browser gets, or what the user reads instead.
func TestOpen(t *testing.T) {
	for _, c := range []struct {
		args     []string
		resolves bool
		want     string // the URL, or what the error says
		fails    bool
	}{
		{[]string{"web"}, true, "http://web.min.internal", false},
		{[]string{"web", "3000"}, true, "http://web.min.internal:3000", false},
		{[]string{"web", "8443"}, true, "https://web.min.internal:8443", false},
		{[]string{"web"}, false, "http://127.0.64.1", false},
		{[]string{"b1", "3000"}, false, "http://127.0.64.1:3000", false},
		{[]string{"web", "9000"}, false, "http://127.0.64.1:9000", false},
		{[]string{"b4"}, false, "http://127.0.0.1:8080", false},
		{[]string{"web", "5432"}, true, "serves no page on port 5432", true},
		{[]string{"quiet"}, true, "serves no page", true},
		{[]string{"other"}, true, "you have no box of this name", true},
		{[]string{"web", "0"}, true, "not a number from 1 to 65535", true},
		{[]string{"web", "http"}, true, "not a number from 1 to 65535", true},
	} {
		l := newLab(t, &fakeHelper{list: pages()})
		l.env.EUID = 1000
		var opened []string
		l.env.Open = func(_ context.Context, u string) error { opened = append(opened, u); return nil }
		l.env.Resolves = func(context.Context, string) bool { return c.resolves }
		code := l.run(t, append([]string{"open"}, c.args...)...)
		switch {
		case c.fails && (code == 0 || len(opened) > 0 || !strings.Contains(l.errOut.String(), c.want)):
			t.Errorf("%v: status %d, opened %v, %s", c.args, code, opened, l.errOut.String())
		case !c.fails && (code != 0 || !slices.Equal(opened, []string{c.want}) || l.out.String() != c.want+"\n"):
			t.Errorf("%v: status %d, opened %v, printed %q; want %s", c.args, code, opened, l.out.String(), c.want)
		}
	}
}

// Root starts no browser, and --print none for anybody.
func TestOpenNothing(t *testing.T) {
	for _, c := range []struct {
		euid, code int
		args       []string
	}{{0, 1, []string{"open", "web"}}, {0, 0, []string{"open", "web", "--print"}}, {1000, 0, []string{"open", "web", "--print"}}} {
		l := newLab(t, &fakeHelper{list: pages()})
		l.env.EUID = c.euid
		l.env.Open = func(context.Context, string) error { t.Errorf("%v as %d opened something", c.args, c.euid); return nil }
		l.env.Resolves = func(context.Context, string) bool { return true }
		if code := l.run(t, c.args...); code != c.code || l.out.String() != "http://web.min.internal\n" {
			t.Errorf("%v as %d: status %d, %q", c.args, c.euid, code, l.out.String())
		}
	}
}

// The first program that exists gets the URL behind its own arguments; its failure is told.
func TestOpenWith(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	open := openWith([][]string{{"absent"}, {"browser", "--new"}, {"second"}})
	if err := open(t.Context(), "http://x"); err == nil || !strings.Contains(err.Error(), "no program here") {
		t.Errorf("without any: %v", err)
	}
	script := "#!/bin/sh\necho \"$@\" > " + filepath.Join(dir, "told") + "\n[ \"$2\" = http://x ]\n"
	if err := os.WriteFile(filepath.Join(dir, "browser"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := open(t.Context(), "http://x"); err != nil {
		t.Error(err)
	}
	if told, err := os.ReadFile(filepath.Join(dir, "told")); err != nil || string(told) != "--new http://x\n" {
		t.Errorf("told %q, %v", told, err)
	}
	var h hinted
	if err := open(t.Context(), "http://y"); !errors.As(err, &h) {
		t.Errorf("a browser that fails: %v", err)
	}
}
