//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gominimal/minhost/installer/api"
)

// note is what run --join and stop need to know of a box that another call of run has made. It is in
// a file of this account alone, for as long as the box lives: whoever reads it can change the box,
// but not from inside one, where the helper takes no such call.
type note struct {
	Lease   string      `json:"lease"`
	Secret  string      `json:"secret"`
	Name    string      `json:"name,omitempty"`
	Address string      `json:"address,omitempty"`
	Host    string      `json:"host_address"`
	Net     api.NetPlan `json:"net"`
	// Hide is what was hidden when the box started: what it made itself since is not among it.
	Hide []string `json:"hide,omitempty"`
	// PID is the process that was attached; in a box with a network of its own the namespace is its.
	PID int `json:"pid"`

	path string
}

func (n *note) hide() []string {
	if n == nil {
		return nil
	}
	return n.Hide
}

// noteFolder is private to the account: in its runtime folder, which goes when it logs out of all
// sessions and is hidden in strict boxes, else beside the logs.
func noteFolder(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return filepath.Join(dir, "minhost"), nil
		}
	}
	dir, err := stateFolder(getenv)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "boxes"), nil
}

// remember writes the note of this box. A box that nobody else has to find needs none.
func (s *session) remember(in api.PlanIn) error {
	n := &note{Lease: s.plan.Lease, Secret: s.plan.Secret, Name: s.plan.Name, Address: s.plan.Address, Host: s.plan.HostAddress,
		Net: s.plan.Net, PID: s.child.PID()}
	dir, err := noteFolder(s.env.Getenv)
	if err == nil {
		n.path = filepath.Join(dir, s.plan.Lease+".json")
	}
	if s.way.strict != strictNever {
		n.Hide = hiddenPaths(filepath.Dir(s.env.Socket), dir)
	}
	s.note = n
	if err == nil {
		err = n.write()
	}
	if err != nil && !in.EndWithConnection {
		return err // nobody could end the box
	}
	if err != nil {
		s.env.Log.Debug("box cannot be joined", "cause", err)
		n.path = ""
	}
	return nil
}

func (n *note) write() error {
	if err := os.MkdirAll(filepath.Dir(n.path), 0o700); err != nil {
		return fmt.Errorf("note of the box: %w", err)
	}
	b, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("note of the box: %w", err)
	}
	f, err := os.OpenFile(n.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("note of the box: %w", err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("note of the box: %w", err)
	}
	return nil
}

// forget removes the note.
func (n *note) forget() {
	if n != nil && n.path != "" {
		_ = os.Remove(n.path)
	}
}

// notes are the files that are there now.
func notes(getenv func(string) string) []string {
	dir, err := noteFolder(getenv)
	if err != nil {
		return nil
	}
	paths, _ := filepath.Glob(filepath.Join(dir, "*.json")) // the only error is one of the pattern
	return paths
}

// sweepNotes removes the notes of boxes that ended when no run was there to do so. They were looked for before
// the boxes: the note of one that started in between is not among them.
func sweepNotes(paths []string, live []api.LeaseInfo) {
	for _, path := range paths {
		lease := strings.TrimSuffix(filepath.Base(path), ".json")
		if !slices.ContainsFunc(live, func(l api.LeaseInfo) bool { return l.Lease == lease }) {
			_ = os.Remove(path)
		}
	}
}

// readNote finds the note of a lease. The file must be this account's: another's could name a box of
// its own.
func readNote(getenv func(string) string, lease string) (*note, error) {
	dir, err := noteFolder(getenv)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, filepath.Base(lease)+".json")
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hinted{fmt.Errorf("lease %s is of another runner than minhost run, or of another XDG_RUNTIME_DIR: only who started it can do this", api.Text(lease)), "minhost ls"}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	n := &note{path: path}
	if err := json.NewDecoder(f).Decode(n); err != nil || n.Lease != lease {
		return nil, fmt.Errorf("note %s: it is not that of lease %s", path, api.Text(lease))
	}
	return n, nil
}
