package boxes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/gominimal/minhost/darwin/procs"
	"github.com/gominimal/minhost/installer/host"
)

// Tree is all boxes of this boot.
type Tree struct {
	FS     host.FS
	Dir    string // of notes; root's, made by Prepare
	BootID string
	Table  procs.Table
	// Kill sends SIGKILL to a process, or with a negative pid to its group.
	Kill func(pid int) error

	mu     sync.Mutex
	leaves map[string]*note
}

// note is what is known of a box. PID 0 is a planned one.
type note struct {
	BootID string `json:"boot_id"`
	PID    int    `json:"pid"`
	Start  string `json:"start"`
	Leader bool   `json:"leader"` // of its process group
}

const suffix = ".box"

// Prepare makes the folder and reads the notes of this boot; those of another are removed.
func (t *Tree) Prepare() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leaves = map[string]*note{}
	err := t.FS.Mkdir(t.Dir, host.Attr{Mode: 0o700})
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	names, err := t.FS.ReadDir(t.Dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		id, ok := strings.CutSuffix(name, suffix)
		if !ok {
			continue
		}
		b, err := t.FS.ReadFile(path.Join(t.Dir, name))
		var n note
		if err == nil && json.Unmarshal(b, &n) == nil && n.BootID == t.BootID {
			t.leaves[id] = &n
			continue
		}
		errs = append(errs, err, t.FS.Remove(path.Join(t.Dir, name)))
	}
	return errors.Join(errs...)
}

// Create makes a box without a process; fs.ErrExist when there is one of the name.
func (t *Tree) Create(id string) (*Leaf, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leaves[id] != nil {
		return nil, fmt.Errorf("box %s: %w", id, fs.ErrExist)
	}
	t.leaves[id] = &note{BootID: t.BootID}
	return &Leaf{t, id}, nil
}

// Open finds a box; fs.ErrNotExist when there is none.
func (t *Tree) Open(id string) (*Leaf, error) {
	if _, ok := t.look(id); !ok {
		return nil, fmt.Errorf("box %s: %w", id, fs.ErrNotExist)
	}
	return &Leaf{t, id}, nil
}

// List names the boxes.
func (t *Tree) List() ([]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for id := range t.leaves {
		names = append(names, id)
	}
	slices.Sort(names)
	return names, nil
}

// LeafOf names the box of a process: its own, or that of a process which started it. A child whose
// parents have ended is nobody's any more; that is not to be known here.
func (t *Tree) LeafOf(pid int) (string, error) {
	found := ""
	err := procs.Above(t.Table, pid, func(i procs.Info) bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		for id, n := range t.leaves {
			if n.PID == i.PID && n.Start == i.Start {
				found = id
			}
		}
		return found != ""
	})
	if errors.Is(err, fs.ErrNotExist) && found == "" {
		// Some process on the way up has ended meanwhile; the first one may live.
		if _, err := t.Table.Info(pid); err != nil {
			return "", err
		}
		return "", nil
	}
	return found, err
}

// GroupOf has nothing to tell: there is no place that a process could go back to.
func (t *Tree) GroupOf(int) (string, error) { return "", nil }

// Restore takes a process out of its box again, after an Attach that failed.
func (t *Tree) Restore(pid int, _ string) error {
	t.mu.Lock()
	var id string
	for k, n := range t.leaves {
		if n.PID == pid {
			id = k
		}
	}
	t.mu.Unlock()
	if id == "" {
		return nil
	}
	return t.store(id, note{BootID: t.BootID})
}

func (t *Tree) look(id string) (note, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.leaves[id]
	if n == nil {
		return note{}, false
	}
	return *n, true
}

// store writes the note first: what the helper believes, its successor must find.
func (t *Tree) store(id string, n note) error {
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	file := path.Join(t.Dir, id+suffix)
	if n.PID == 0 {
		err = t.FS.Remove(file)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	} else {
		err = t.FS.WriteFile(file, append(b, '\n'), host.Attr{Mode: 0o600})
	}
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leaves[id] = &n
	return nil
}

func (t *Tree) forget(id string) error {
	if err := t.store(id, note{}); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.leaves, id)
	return nil
}
