package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"

	"github.com/gominimal/minhost/installer/host"
)

// Tree is <mount>/<rel>/{holder,boxes}. Safe for concurrent use.
type Tree struct {
	mount Mount
	rel   string
	parts []string
	gate  host.Gate
	top   dir // the mount point

	mu    sync.Mutex
	boxes dir // held open from Ensure or the first use until Close
}

// FindMountHere reads the mounts of this process.
func FindMountHere() (Mount, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Mount{}, err
	}
	return FindMount(string(text))
}

// Open opens the mount; the tree itself need not exist yet. rel is the path of the root below the
// mount: "minhost" standalone, else the cgroup of the unit that holds the tree. A nil gate lets every
// change through.
func Open(m Mount, rel string, gate host.Gate) (*Tree, error) {
	parts, err := splitRel(rel)
	if err != nil {
		return nil, err
	}
	top, err := openMount(m.Point)
	if err != nil {
		return nil, err
	}
	return &Tree{mount: m, rel: rel, parts: parts, gate: gate, top: top}, nil
}

// Mount tells what the tree lives on.
func (t *Tree) Mount() Mount { return t.mount }

// Path is the absolute path of the root, for display.
func (t *Tree) Path() string { return path.Join(t.mount.Point, t.rel) }

// Level is the depth of boxes below the cgroup2 root, which rules name ("socket cgroupv2 level N");
// leaves are one deeper. In a cgroup namespace it counts from the root of that namespace, as kernels
// do from 6.12 on (and stable ones that carry the fix); on others only the live self-test tells.
func (t *Tree) Level() int { return len(t.parts) + 1 }

// Close closes the descriptors. The tree stays.
func (t *Tree) Close() error {
	t.letGo()
	return t.top.close()
}

// letGo closes what held opened.
func (t *Tree) letGo() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.boxes.f != nil {
		t.boxes.close()
		t.boxes = dir{}
	}
}

// BoxesID is the cgroup id of boxes, from the directory that is held open.
func (t *Tree) BoxesID() (uint64, error) {
	b, err := t.held()
	if err != nil {
		return 0, err
	}
	return b.id()
}

// BoxesFD is the open directory of boxes, for attaching programs to it. It stays the Tree's.
func (t *Tree) BoxesFD() (int, error) {
	b, err := t.held()
	if err != nil {
		return -1, err
	}
	return b.fd(), nil
}

// held opens boxes once and keeps it.
func (t *Tree) held() (dir, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.boxes.f != nil {
		return t.boxes, nil
	}
	b, err := t.walk(boxesName)
	if err != nil {
		return dir{}, err
	}
	t.boxes = b
	return b, nil
}

// walk opens the root and then the names below it, one component at a time.
func (t *Tree) walk(below ...string) (dir, error) {
	d := t.top
	for _, name := range append(append([]string{}, t.parts...), below...) {
		next, err := d.sub(name)
		if d.f != t.top.f {
			d.close()
		}
		if err != nil {
			return dir{}, err
		}
		d = next
	}
	return d, nil
}

// Ensure makes what is missing of root, holder and boxes, checks what is there, and holds boxes open.
// The folders above the root must exist: they are the service manager's. Nothing is repaired: a
// folder with a wrong owner, type or controller is somebody else's doing and is an error.
func (t *Tree) Ensure() error {
	parent := t.top
	for i, name := range t.parts {
		next, err := parent.sub(name)
		if errors.Is(err, fs.ErrNotExist) && i == len(t.parts)-1 {
			next, err = t.make(parent, name)
		}
		if parent.f != t.top.f {
			parent.close()
		}
		if err != nil {
			return err
		}
		parent = next
	}
	defer parent.close()
	for _, name := range []string{holderName, boxesName} {
		d, err := parent.sub(name)
		if errors.Is(err, fs.ErrNotExist) {
			d, err = t.make(parent, name)
		}
		if err != nil {
			return err
		}
		d.close()
	}
	t.letGo() // what was held may be a directory that is gone
	r, err := t.Probe()
	if err != nil {
		return err
	}
	if len(r.Problems) > 0 {
		return fmt.Errorf("cgroup %s: %s", t.rel, r.Problems[0])
	}
	_, err = t.held()
	return err
}

func (t *Tree) make(parent dir, name string) (dir, error) {
	if err := t.gate.Pass("cgroup mkdir " + parent.join(name)); err != nil {
		return dir{}, err
	}
	if err := parent.mkdir(name); err != nil {
		return dir{}, err
	}
	return parent.sub(name)
}

// EnterHolder moves a process into holder/, the place of the process that keeps the tree (systemd
// removes empty directories of a unit that restarts) and out of the root, which must stay empty.
func (t *Tree) EnterHolder(pid int) error {
	if err := t.gate.Pass(fmt.Sprintf("cgroup move %d into %s", pid, holderName)); err != nil {
		return err
	}
	d, err := t.walk(holderName)
	if err != nil {
		return err
	}
	defer d.close()
	return move(d, pid)
}
