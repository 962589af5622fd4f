package helper

import (
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"os"

	"github.com/gominimal/minhost/installer/lease"
)

// hostNet is the number of the host's namespace in a world.
const hostNet = 4026531840

// fakeIsolation is the namespaces of a world: fakeProc.netns, where 0 is the host's.
type fakeIsolation struct{ w *world }

func (f fakeIsolation) Host() (uint64, error) { return hostNet, f.w.pass("host's netns") }

func (f fakeIsolation) Of(pid int) (Namespace, error) {
	n, err := f.of(pid)
	if err == nil {
		f.w.pass(fmt.Sprint("netns of ", pid))
	}
	return n, err
}

func (f fakeIsolation) of(pid int) (Namespace, error) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	p := f.w.procs[pid]
	if p == nil || p.dead {
		return nil, fs.ErrNotExist
	}
	file, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	f.w.nets++
	return &fakeNet{f.w, netOf(p), file}, nil
}

func netOf(p *fakeProc) uint64 {
	if p.netns == 0 {
		return hostNet
	}
	return p.netns
}

type fakeNet struct {
	w    *world
	id   uint64
	file *os.File
}

func (n *fakeNet) ID() uint64     { return n.id }
func (n *fakeNet) File() *os.File { return n.file }

func (n *fakeNet) Close() error {
	n.w.mu.Lock()
	n.w.nets--
	n.w.mu.Unlock()
	return n.file.Close()
}

func (n *fakeNet) Users() ([]int, error) {
	if err := n.w.pass("users"); err != nil {
		return nil, err
	}
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	var all []int
	for pid, p := range n.w.procs {
		if netOf(p) == n.id && !p.dead {
			all = append(all, pid)
		}
	}
	return all, nil
}

// Prepare makes a pipe for a tap: its end of the world sees when nobody holds the other any more.
func (n *fakeNet) Prepare(_ context.Context, tap *lease.Tap) (*os.File, error) {
	if err := n.w.pass("prepare"); err != nil || tap == nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	n.w.taps = append(n.w.taps, r)
	return w, nil
}

func (n *fakeNet) RemoveTaps(context.Context) error {
	if err := n.w.pass("remove taps"); err != nil {
		return err
	}
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	n.w.removed++
	return nil
}

// fakeSockets makes no sockets, but descriptors.
type fakeSockets struct{ w *world }

func (f fakeSockets) Listen(_ context.Context, _ Leaf, _ uint32, _ lease.Protocol, at netip.AddrPort) (*os.File, netip.AddrPort, error) {
	if err := f.w.pass("listen"); err != nil {
		return nil, netip.AddrPort{}, err
	}
	file, err := os.Open(os.DevNull)
	return file, at, err
}
