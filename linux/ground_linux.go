package linux

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

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
	// Planes are those of the config; zero for none.
	Planes nft.Planes
	Gate   host.Gate
	Log    *slog.Logger
	// Lacking says why there can be no belt; nil for belt.Lacking.
	Lacking func() error
	// Owner is the socket that the table is made with where there is no belt; nil makes a table that is nobody's.
	Owner func() (*os.File, error)
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

// Beltless says why this host can have no belt; nil where it can. The table is the helper's own then.
func (g Ground) Beltless() error {
	if g.Lacking != nil {
		return g.Lacking()
	}
	return belt.Lacking()
}

// WriterOf opens the table for the one process that goes on writing it. Without a belt the table belongs to the
// socket that owner returns, which is to outlive the process.
func (g Ground) WriterOf(ctx context.Context, t *cgroup.Tree, owner func() (*os.File, error)) (*nft.Table, error) {
	lacks := g.Beltless()
	if lacks == nil {
		return g.TableOf(t)
	}
	c, err := g.tableConfig(t)
	if err != nil {
		return nil, err
	}
	socket, err := owner()
	if err != nil {
		return nil, err
	}
	g.Log.Warn("no belt: the table is owned instead", "cause", lacks)
	return nft.NewOwner(ctx, c, socket, g.Log)
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
	c, err := g.tableConfig(t)
	if err != nil {
		return nil, err
	}
	return nft.New(c, g.Log)
}

func (g Ground) tableConfig(t *cgroup.Tree) (nft.Config, error) {
	id, err := t.BoxesID()
	if err != nil {
		return nft.Config{}, fmt.Errorf("boxes: %w", err)
	}
	node, err := t.NodeID()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nft.Config{}, fmt.Errorf("runners: %w", err)
	}
	return nft.Config{Boxes: id, Level: t.Level(), Marks: g.Marks, Planes: g.Planes, Node: node}, nil
}

// table calls f with the table of the tree's boxes.
func (g Ground) table(f func(*nft.Table) error) error {
	t, err := g.boxes()
	if err != nil {
		return err
	}
	defer t.Close()
	open := g.TableOf
	if g.Owner != nil {
		open = func(t *cgroup.Tree) (*nft.Table, error) { return g.WriterOf(context.Background(), t, g.Owner) }
	}
	table, err := open(t)
	if err != nil {
		return err
	}
	return errors.Join(f(table), table.Close())
}
