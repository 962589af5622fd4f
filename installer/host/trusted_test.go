package host_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/host"
)

// tree is an FS that only knows what lies where.
type tree struct {
	host.FS
	nodes map[string]host.Info
}

func (t tree) Lstat(p string) (host.Info, error) {
	if i, ok := t.nodes[p]; ok {
		return i, nil
	}
	return host.Info{}, fs.ErrNotExist
}

func TestTrusted(t *testing.T) {
	node := func(uid int, mode fs.FileMode) host.Info {
		return host.Info{Attr: host.Attr{UID: uid, GID: 50, Mode: mode}}
	}
	dir := node(0, fs.ModeDir|0o755)
	for name, tc := range map[string]struct {
		path  string
		nodes map[string]host.Info
		bad   string // component
		why   string
	}{
		"good":                {"/a/b", map[string]host.Info{"/": dir, "/a": dir, "/a/b": node(0, 0o755)}, "", ""},
		"file is missing":     {"/a/b", map[string]host.Info{"/": dir, "/a": dir}, "", ""},
		"all is missing":      {"/a/b/c", map[string]host.Info{"/": dir}, "", ""},
		"root itself":         {"/", map[string]host.Info{"/": node(0, fs.ModeDir|0o777)}, "/", "everybody"},
		"user's folder":       {"/a/b", map[string]host.Info{"/": dir, "/a": node(501, fs.ModeDir|0o755)}, "/a", "uid 501"},
		"group":               {"/a/b", map[string]host.Info{"/": dir, "/a": node(0, fs.ModeDir|0o775)}, "/a", "group 50"},
		"everybody":           {"/a/b", map[string]host.Info{"/": dir, "/a": node(0, fs.ModeDir|0o757)}, "/a", "everybody"},
		"sticky is no excuse": {"/a/b", map[string]host.Info{"/": dir, "/a": node(0, fs.ModeDir|fs.ModeSticky|0o777)}, "/a", "everybody"},
		"link above":          {"/a/b", map[string]host.Info{"/": dir, "/a": node(0, fs.ModeSymlink|0o777)}, "/a", "link"},
		"link at the end":     {"/a/b", map[string]host.Info{"/": dir, "/a": dir, "/a/b": node(0, fs.ModeSymlink|0o777)}, "/a/b", "link"},
		"file above":          {"/a/b", map[string]host.Info{"/": dir, "/a": node(0, 0o755)}, "/a", "not a folder"},
		"user's file":         {"/a/b", map[string]host.Info{"/": dir, "/a": dir, "/a/b": node(1, 0o755)}, "/a/b", "uid 1"},
		"fifo at the end":     {"/a/b", map[string]host.Info{"/": dir, "/a": dir, "/a/b": node(0, fs.ModeNamedPipe|0o600)}, "/a/b", "not a folder"},
		"bad far above":       {"/a/b/c/d", map[string]host.Info{"/": dir, "/a": node(0, fs.ModeDir|0o775), "/a/b": dir, "/a/b/c": dir}, "/a", "group"},
		"odd name":            {"/it's/b", map[string]host.Info{"/": dir, "/it's": node(7, fs.ModeDir|0o755)}, "/it's", `ls -ld '/it'\''s'`},
	} {
		err := host.Trusted(tree{nodes: tc.nodes}, tc.path)
		if tc.bad == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var u *host.Untrusted
		if !errors.As(err, &u) || u.Component != tc.bad || !strings.Contains(err.Error(), tc.why) || !strings.Contains(err.Error(), "ls -ld ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := host.Trusted(tree{}, "a/b"); err == nil {
		t.Error("a relative path is trusted")
	}
}

type denied struct{ host.FS }

func (denied) Lstat(string) (host.Info, error) { return host.Info{}, fs.ErrPermission }

// TestTrustedIsNotSure: what cannot be looked at is not trusted.
func TestTrustedIsNotSure(t *testing.T) {
	if err := host.Trusted(denied{}, "/a"); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
}
