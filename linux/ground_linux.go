package linux

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/linux/belt"
	"github.com/gominimal/minhost/linux/cgroup"
	"github.com/gominimal/minhost/linux/nft"
)

// Ground opens what boxes stand on: the tree, and the belt and the table that go with its boxes.
// Each call opens afresh, since a tree that was made again has other ids.
type Ground struct {
	// Rel is the tree's root below the cgroup2 mount: "minhost", or the cgroup of the tree unit.
	Rel string
	// Marks are those of the config; zero for the default ones.
	Marks nft.Marks
	Gate  host.Gate
	Log   *slog.Logger
}

// Tree opens the tree, which may not exist yet.
func (g Ground) Tree() (*cgroup.Tree, error) {
	m, err := cgroup.FindMountHere()
	if err != nil {
		return nil, err
	}
	return cgroup.Open(m, g.Rel, g.Gate)
}

// errNoTree is what belt and table say when the step before them is missing.
var errNoTree = errors.New("the cgroup tree is not there")

// boxes opens a tree that must exist.
func (g Ground) boxes() (*cgroup.Tree, error) {
	t, err := g.Tree()
	if err != nil {
		return nil, err
	}
	if _, err := t.BoxesID(); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = errNoTree
		}
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Belt calls f with the belt of the tree's boxes.
func (g Ground) Belt(f func(*belt.Belt) error) error {
	t, err := g.boxes()
	if err != nil {
		return err
	}
	defer t.Close()
	fd, err := t.BoxesFD()
	if err != nil {
		return err
	}
	cookie, err := belt.NetnsCookie()
	if err != nil {
		return err
	}
	b, err := belt.New(fd, belt.Fit(g.beltConfig(cookie)), g.Gate)
	if err != nil {
		return err
	}
	return f(b)
}

func (g Ground) beltConfig(cookie uint64) belt.Config {
	m := g.Marks.OrDefault()
	return belt.Config{Approve: m.Belt, Lease: m.Lease, Admit: m.Ingress, Host: m.Host, Foreign: m.Foreign, NetnsCookie: cookie}
}

// TableOf opens the table for a tree that is open. The caller closes it.
func (g Ground) TableOf(t *cgroup.Tree) (*nft.Table, error) {
	id, err := t.BoxesID()
	if err != nil {
		return nil, fmt.Errorf("boxes: %w", err)
	}
	return nft.New(nft.Config{Boxes: id, Level: t.Level(), Marks: g.Marks}, g.Log)
}

// table calls f with the table of the tree's boxes.
func (g Ground) table(f func(*nft.Table) error) error {
	t, err := g.boxes()
	if err != nil {
		return err
	}
	defer t.Close()
	table, err := g.TableOf(t)
	if err != nil {
		return err
	}
	return errors.Join(f(table), table.Close())
}
