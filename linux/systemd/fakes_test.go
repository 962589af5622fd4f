package systemd

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/gominimal/minhost/installer/host"
)

// memFS holds files in memory and counts changes.
type memFS struct {
	files   map[string]string
	attr    map[string]host.Attr
	changes int
}

func newMemFS() *memFS { return &memFS{files: map[string]string{}, attr: map[string]host.Attr{}} }

func (m *memFS) ReadFile(p string) ([]byte, error) {
	if c, ok := m.files[p]; ok {
		return []byte(c), nil
	}
	return nil, fs.ErrNotExist
}

func (m *memFS) Lstat(p string) (host.Info, error) {
	if _, ok := m.files[p]; !ok {
		return host.Info{}, fs.ErrNotExist
	}
	return host.Info{Attr: m.attr[p], Size: int64(len(m.files[p]))}, nil
}

func (m *memFS) WriteFile(p string, b []byte, a host.Attr) error {
	m.files[p], m.attr[p] = string(b), a
	m.changes++
	return nil
}

func (m *memFS) Remove(p string) error {
	if _, ok := m.files[p]; !ok {
		return fs.ErrNotExist
	}
	delete(m.files, p)
	m.changes++
	return nil
}

func (m *memFS) ReadDir(string) ([]string, error) { panic("not used") }
func (m *memFS) Mkdir(string, host.Attr) error    { panic("not used") }
func (m *memFS) Symlink(string, string) error     { panic("not used") }
func (m *memFS) Readlink(string) (string, error)  { panic("not used") }

// manager is a model of systemd that objects to wrong order: what it was not told to read it
// neither enables nor starts, and a unit with RefuseManualStop is not stopped while loaded.
type manager struct {
	fs      *memFS
	loaded  map[string]string // name -> content as read
	enabled map[string]bool
	active  map[string]bool
	pid     map[string]string
	calls   []string
}

func newManager(m *memFS) *manager {
	return &manager{fs: m, loaded: map[string]string{}, enabled: map[string]bool{}, active: map[string]bool{}, pid: map[string]string{}}
}

func (m *manager) Run(_ context.Context, c host.Command) (host.Result, error) {
	if c.Path != "/usr/bin/systemctl" || c.Args[0] != "--no-ask-password" || c.Reads != (c.Args[1] == "show") {
		return host.Result{}, fmt.Errorf("run %+v", c)
	}
	args := c.Args[1:]
	var units []string
	if i := slices.Index(args, "--"); i >= 0 {
		units = args[i+1:]
	}
	if args[0] != "show" {
		m.calls = append(m.calls, strings.Join(args, " "))
	}
	if args[0] == "daemon-reload" {
		m.loaded = map[string]string{}
		for p, c := range m.fs.files {
			m.loaded[p[strings.LastIndex(p, "/")+1:]] = c
		}
		return host.Result{}, nil
	}
	var out strings.Builder
	for _, u := range units {
		if err := m.one(&out, args[0], u); err != nil {
			return host.Result{}, err
		}
	}
	return host.Result{Stdout: []byte(out.String())}, nil
}

func (m *manager) one(out *strings.Builder, verb, u string) error {
	content, known := m.loaded[u]
	switch verb {
	case "show":
		st := map[bool]string{true: "active", false: "inactive"}[m.active[u]]
		load := map[bool]string{true: "loaded", false: "not-found"}[known]
		file := map[bool]string{true: "enabled", false: "disabled"}[m.enabled[u]]
		stale := map[bool]string{true: "yes", false: "no"}[m.fs.files["/etc/systemd/system/"+u] != content]
		fmt.Fprintf(out, "Id=%s\nActiveState=%s\nUnitFileState=%s\nLoadState=%s\nNeedDaemonReload=%s\nMainPID=%s\n\n", u, st, file, load, stale, m.pid[u])
	case "enable", "start", "restart":
		if !known {
			return fmt.Errorf("%s %s: not loaded", verb, u)
		}
		if verb == "enable" {
			m.enabled[u] = true
		} else {
			m.active[u] = true
		}
	case "disable":
		delete(m.enabled, u)
	case "stop":
		if strings.Contains(content, "RefuseManualStop=yes") {
			return fmt.Errorf("stop %s: operation refused", u)
		}
		delete(m.active, u)
	}
	return nil
}
