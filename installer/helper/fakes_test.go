package helper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// world is a host in memory: tree, processes, table, zone, store. Every port of the helper is a
// view of it, and hook is asked before each change, so that a test can fail or stop any of them.
type world struct {
	mu        sync.Mutex
	hook      func(point string) error
	leaves    map[string]*fakeLeaf
	nextInode uint64
	procs     map[int]*fakeProc
	table     map[uint64]lease.Verdict
	refused   map[uint64]bool // leaves that were taken out of it
	zone      map[string]netip.Addr
	store     map[string]lease.Lease
	inUse     map[netip.Addr]bool
	rest      map[netip.Addr]time.Time
	cuts      []lease.Verdict
	ends      []uint64 // cgroups whose sockets were destroyed
	changed   chan struct{}
	nets      int        // namespaces that are held
	taps      []*os.File // the other ends of taps that were made
	removed   int        // how often taps were removed
}

type fakeProc struct {
	pid      int
	uid      uint32
	group    string // "" or a lease id
	dead     bool
	children bool
	parent   int
	unfit    *Unfit
	pinned   int    // its number cannot be another's
	netns    uint64 // 0 is the host's
}

func newWorld() *world {
	return &world{leaves: map[string]*fakeLeaf{}, nextInode: 100, procs: map[int]*fakeProc{}, table: map[uint64]lease.Verdict{}, refused: map[uint64]bool{},
		zone: map[string]netip.Addr{}, store: map[string]lease.Lease{}, inUse: map[netip.Addr]bool{}, changed: make(chan struct{}, 1)}
}

// pass asks the hook, without the lock: it may call back.
func (w *world) pass(point string) error {
	w.mu.Lock()
	hook := w.hook
	w.mu.Unlock()
	if hook == nil {
		return nil
	}
	return hook(point)
}

func (w *world) spawn(pid int, uid uint32) *fakeProc {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &fakeProc{pid: pid, uid: uid}
	w.procs[pid] = p
	return p
}

// fakeLeaf is a directory with an inode.
type fakeLeaf struct {
	w    *world
	id   string
	node uint64
}

func (w *world) Create(id string) (Leaf, error) {
	if err := w.pass("mkdir"); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leaves[id] != nil {
		return nil, fs.ErrExist
	}
	w.nextInode++
	w.leaves[id] = &fakeLeaf{w, id, w.nextInode}
	return w.leaves[id], nil
}

func (w *world) Open(id string) (Leaf, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leaves[id] == nil {
		return nil, fs.ErrNotExist
	}
	return w.leaves[id], nil
}

func (w *world) List() ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for id := range w.leaves {
		all = append(all, id)
	}
	return all, nil
}

func (w *world) LeafOf(pid int) (string, error) {
	leaf, err := w.groupOf(pid)
	return leaf, errors.Join(err, w.pass(fmt.Sprint("leaf of ", pid)))
}

func (w *world) groupOf(pid int) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.procs[pid]
	if p == nil {
		return "", fs.ErrNotExist
	}
	return p.group, nil
}

func (w *world) GroupOf(pid int) (string, error) {
	if err := w.pass("group"); err != nil {
		return "", err
	}
	return w.groupOf(pid)
}

func (w *world) Restore(pid int, group string) error {
	if err := w.pass("restore"); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.procs[pid].group = group
	return nil
}

func (l *fakeLeaf) ID() uint64 { return l.node }

func (l *fakeLeaf) IDs() ([]uint64, error) { return []uint64{l.node}, nil }

func (l *fakeLeaf) Path() string { return "/sys/fs/cgroup/minhost/boxes/" + l.id }
func (l *fakeLeaf) Close() error { return nil }

func (l *fakeLeaf) Move(pid int) error {
	if err := l.w.pass("move"); err != nil {
		return err
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	p := l.w.procs[pid]
	if p == nil || p.dead {
		return syscall.ESRCH
	}
	if _, known := l.w.table[l.node]; !known && !l.w.refused[l.node] && l.w.table != nil {
		return errors.New("moved before its verdict was live")
	}
	p.group = l.id
	l.w.mu.Unlock()
	err := l.w.pass("moved")
	l.w.mu.Lock()
	return err
}

func (l *fakeLeaf) Pids() ([]int, error) {
	if err := l.w.pass("pids"); err != nil {
		return nil, err
	}
	all := l.pids()
	return all, l.w.pass("have pids")
}

func (l *fakeLeaf) pids() []int {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	var all []int
	for _, p := range l.w.procs {
		if p.group == l.id && !p.dead {
			all = append(all, p.pid)
		}
	}
	return all
}

func (l *fakeLeaf) Populated() (bool, error) { return len(l.pids()) > 0, nil }

func (l *fakeLeaf) WaitEmpty(ctx context.Context) error {
	if err := l.w.pass("wait empty"); err != nil {
		return err
	}
	for {
		if live, _ := l.Populated(); !live {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick():
		}
	}
}

func (l *fakeLeaf) Kill() error {
	if err := l.w.pass("kill"); err != nil {
		return err
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	for _, p := range l.w.procs {
		if p.group == l.id {
			p.dead = true
		}
	}
	return nil
}

func (l *fakeLeaf) Remove() error {
	if err := l.w.pass("rmdir"); err != nil {
		return err
	}
	if live, _ := l.Populated(); live {
		return syscall.EBUSY
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	delete(l.w.leaves, l.id)
	return nil
}

// fakeTable is the table of a world.
type fakeTable struct{ w *world }

func (t fakeTable) Put(_ context.Context, v lease.Verdict) error {
	if err := t.w.pass("put"); err != nil {
		return err
	}
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	t.w.table[v.Leaf] = v
	return nil
}

// fakeFlows notes what was cut.
type fakeFlows struct{ w *world }

func (f fakeFlows) Connected(context.Context, []uint64) (bool, error) { return true, nil }

func (f fakeFlows) End(_ context.Context, groups []uint64) (int, error) {
	if err := f.w.pass("end sockets"); err != nil {
		return 0, err
	}
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.w.ends = append(f.w.ends, groups...)
	return 0, nil
}

func (f fakeFlows) Cut(_ context.Context, v lease.Verdict, groups []uint64, _ lease.Place, _ func(uint64) uint16) (int, error) {
	if err := f.w.pass("cut"); err != nil {
		return 0, err
	}
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	if held := f.w.table[v.Leaf]; !held.Cutting || !held.Policy.Equal(v.Policy) {
		return 0, fmt.Errorf("flows are cut while the table holds %+v", held)
	}
	f.w.cuts = append(f.w.cuts, v)
	return 1, nil
}

func (t fakeTable) Delete(_ context.Context, v lease.Verdict) error {
	if err := t.w.pass("delete"); err != nil {
		return err
	}
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	delete(t.w.table, v.Leaf)
	return nil
}

func (t fakeTable) Refuse(ctx context.Context, v lease.Verdict) error {
	if err := t.Delete(ctx, v); err != nil {
		return err
	}
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	t.w.refused[v.Leaf] = true
	return nil
}

func (t fakeTable) Refill(_ context.Context, all []lease.Verdict) error {
	if err := t.w.pass("refill"); err != nil {
		return err
	}
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	clear(t.w.table)
	for _, v := range all {
		t.w.table[v.Leaf] = v
	}
	return nil
}

func (t fakeTable) Compare(_ context.Context, all []lease.Verdict) ([]string, error) {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	var d []string
	for _, v := range all {
		if got, ok := t.w.table[v.Leaf]; !ok || !got.Policy.Equal(v.Policy) {
			d = append(d, fmt.Sprintf("leaf %d", v.Leaf))
		}
	}
	if len(all) != len(t.w.table) {
		d = append(d, fmt.Sprintf("%d verdicts, want %d", len(t.w.table), len(all)))
	}
	return d, nil
}

func (t fakeTable) Refusals(context.Context) (refused, told uint64, err error) { return 5, 3, nil }

func (t fakeTable) Traffic(context.Context) (lease.Planes, error) {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	p := lease.Planes{Node: lease.Traffic{SentPackets: 1, ReceivedBytes: 40}, Cohort: lease.Traffic{SentPackets: 9}, Boxes: map[uint64]lease.Traffic{}}
	for leaf, v := range t.w.table {
		p.Boxes[leaf] = lease.Traffic{SentBytes: uint64(v.Number)}
	}
	return p, nil
}

func (t fakeTable) Changed() <-chan struct{} { return t.w.changed }

func (t fakeTable) Elements(all []lease.Verdict) int {
	n := 0
	for _, v := range all {
		n += len(v.Policy.Rules) + len(v.Policy.DenySubnets)
	}
	return n
}

func (w *world) Publish(names map[string]netip.Addr) error {
	if err := w.pass("publish"); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.zone = names
	return nil
}

func (w *world) Free(a netip.Addr) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inUse[a] {
		return fmt.Errorf("a socket is bound to %s", a)
	}
	return nil
}

type fakeStore struct{ w *world }

func (s fakeStore) Put(l lease.Lease) error {
	if err := s.w.pass("store"); err != nil {
		return err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.store[l.ID] = l
	return nil
}

func (s fakeStore) Remove(id string) error {
	if err := s.w.pass("unstore"); err != nil {
		return err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	delete(s.w.store, id)
	return nil
}

func (s fakeStore) All() ([]lease.Lease, []error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	var all []lease.Lease
	for _, l := range s.w.store {
		all = append(all, l)
	}
	return all, nil
}

func (s fakeStore) Rest(released map[netip.Addr]time.Time) error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.rest = released
	return nil
}

func (s fakeStore) Rested() (map[netip.Addr]time.Time, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.w.rest, nil
}

type fakeProcs struct{ w *world }

func (f fakeProcs) Open(pid int) (Process, error) {
	if err := f.w.pass("open"); err != nil {
		return nil, err
	}
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	if f.w.procs[pid] == nil {
		return nil, fs.ErrNotExist
	}
	return handle{f.w, f.w.procs[pid]}, nil
}

// FromFD takes any descriptor for a pidfd of process 20.
func (f fakeProcs) FromFD(file *os.File) (Process, error) {
	file.Close()
	return f.Open(20)
}

type handle struct {
	w *world
	p *fakeProc
}

func (h handle) PID() int { return h.p.pid }
func (h handle) Alive() bool {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	return !h.p.dead
}
func (h handle) Fit(uid uint32, anyUID bool) error {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if h.p.unfit != nil {
		return h.p.unfit
	}
	if !anyUID && h.p.uid != uid {
		return &Unfit{"uid", "it is another user's"}
	}
	return nil
}
func (h handle) Childless() (bool, error) {
	if err := h.w.pass("childless"); err != nil {
		return false, err
	}
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	return !h.p.children, nil
}
func (h handle) Children() ([]int, error) {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	var out []int
	for _, p := range h.w.procs {
		if p.parent == h.p.pid {
			out = append(out, p.pid)
		}
	}
	return out, nil
}
func (h handle) Pin() (func(), error) {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	h.p.pinned++
	return func() {
		h.w.mu.Lock()
		defer h.w.mu.Unlock()
		h.p.pinned--
	}, nil
}
func (h handle) Kill() error {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	h.p.dead = true
	return nil
}
func (h handle) Close() error { return nil }

type noChecks struct{}

func (noChecks) Checks(context.Context) []api.Check { return nil }

func (w *world) zoneOf(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.zone[name].String()
}
