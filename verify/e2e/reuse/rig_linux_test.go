package reuse

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
	"github.com/gominimal/minhost/installer/helper"
	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux/cgroup"
	"github.com/gominimal/minhost/linux/proc"
	"github.com/gominimal/minhost/verify/netlab"
)

// lookAfter is the pause between looks for processes that left their leaf.
const lookAfter = 20 * time.Millisecond

func TestMain(m *testing.M) {
	os.Exit(netlab.Main(m, netlab.Children{"keeper": keeperMain}))
}

// rig is a helper in this process, and a connection to it. It is the source of its own gates.
type rig struct {
	t        *testing.T
	c        *client.Client
	unpinned atomic.Bool

	mu    sync.Mutex
	point string
	do    func()
}

// at calls do once, at the change that begins like this.
func (r *rig) at(point string, do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.point, r.do = point, do
}

func (r *rig) pass(change string) error {
	r.mu.Lock()
	do := r.do
	hit := do != nil && strings.HasPrefix(change, r.point)
	if hit {
		r.do = nil
	}
	r.mu.Unlock()
	if hit {
		do()
	}
	return nil
}

func (r *rig) eventually(what string, holds func() bool) {
	r.t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("never: %s", what)
		}
	}
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t}
	m, err := cgroup.FindMountHere()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := cgroup.Open(m, "reuse", r.pass)
	if err == nil {
		err = tree.Ensure()
	}
	if err != nil {
		t.Fatal(err)
	}
	h := helper.New(helper.Config{
		Version: "test", BootID: "boot", ServiceManager: "none", Unenforceable: "no packet is looked at here",
		Tree: treeOf{tree}, Names: names{}, Range: names{}, Processes: processes{r}, Peers: helper.KernelPeers{}, Checker: names{}, Store: store{r},
		Operators: func(helper.Peer) (bool, error) { return true, nil },
		Grace:     time.Second, AdoptWithin: time.Second, RetryAfter: 50 * time.Millisecond, LookAfter: lookAfter,
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { h.WatchLeaves(ctx) })
	work.Go(func() {
		if err := h.Serve(ctx, l); err != nil {
			t.Error(err)
		}
	})
	if r.c, err = client.Dial(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.c.Close()
		cancel()
		work.Wait()
		h.Close()
		tree.Close()
	})
	return r
}

// treeOf and processes are the ports as the program wires them.
type treeOf struct{ *cgroup.Tree }

func (t treeOf) Create(id string) (helper.Leaf, error) { return leafOf(t.Tree.Create(id)) }
func (t treeOf) Open(id string) (helper.Leaf, error)   { return leafOf(t.Tree.Open(id)) }

func leafOf(l *cgroup.Leaf, err error) (helper.Leaf, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

type processes struct{ r *rig }

func (p processes) Open(pid int) (helper.Process, error) {
	h, err := proc.Open(pid)
	if errors.Is(err, proc.ErrGone) {
		return nil, errors.Join(fs.ErrNotExist, err)
	}
	return process{h, p.r}, err
}

func (processes) FromFD(*os.File) (helper.Process, error) { return nil, errors.ErrUnsupported }

type process struct {
	*proc.Process
	r *rig
}

func (p process) Alive() bool {
	ok, err := p.Process.Alive()
	return ok && err == nil
}

func (p process) Kill() error { return p.Signal(unix.SIGKILL) }

func (p process) Childless() (bool, error) {
	c, err := p.Children()
	return len(c) == 0, err
}

func (process) Fit(uint32, bool) error { return nil }

func (p process) Pin() (func(), error) {
	if p.r.unpinned.Load() {
		return nil, errors.ErrUnsupported
	}
	return p.Process.Pin()
}

// names stands for what does not matter here.
type names struct{}

func (names) Publish(map[string]netip.Addr) error { return nil }
func (names) Free(netip.Addr) error               { return nil }
func (names) Checks(context.Context) []api.Check  { return nil }

// store keeps nothing, and is a point.
type store struct{ r *rig }

func (s store) Put(lease.Lease) error                   { return s.r.pass("store") }
func (store) Remove(string) error                       { return nil }
func (store) All() ([]lease.Lease, []error)             { return nil, nil }
func (store) Rest(map[netip.Addr]time.Time) error       { return nil }
func (store) Rested() (map[netip.Addr]time.Time, error) { return nil, nil }
