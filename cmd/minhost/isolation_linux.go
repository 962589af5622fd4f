package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"

	"github.com/gominimal/minhost/installer/helper"
	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux/apparmor"
	"github.com/gominimal/minhost/linux/cgroup"
	"github.com/gominimal/minhost/linux/errand"
	"github.com/gominimal/minhost/linux/listen"
	"github.com/gominimal/minhost/linux/netns"
)

// errands are what children of the helper do in other places.
func errands() errand.Table {
	all := errand.Table{
		listen.Name:       listen.Child,
		netns.PrepareName: netns.PrepareChild,
		netns.RemoveName:  netns.RemoveChild,
	}
	maps.Copy(all, apparmor.Errands())
	return all
}

// isolationPort tells network namespaces apart.
type isolationPort struct{}

func (isolationPort) Of(pid int) (helper.Namespace, error) {
	n, err := netns.Of(pid)
	if errors.Is(err, netns.ErrThreads) {
		return nil, &helper.Unfit{Reason: "threads", Text: netns.ErrThreads.Error()}
	}
	if err != nil {
		return nil, err
	}
	return netPort{n}, nil
}

func (isolationPort) Host() (uint64, error) {
	n, err := netns.Host()
	if err != nil {
		return 0, err
	}
	return n.ID(), n.Close()
}

// netPort is a namespace as the helper sees it.
type netPort struct{ *netns.Namespace }

func (p netPort) Prepare(ctx context.Context, tap *lease.Tap) (*os.File, error) {
	var t *netns.Tap
	if tap != nil {
		t = &netns.Tap{Name: tap.Name, Address: tap.Address, Gateway: tap.Gateway, MTU: tap.MTU}
	}
	f, err := p.Namespace.Prepare(ctx, t)
	if errors.Is(err, netns.ErrNotEmpty) {
		return nil, &helper.Unfit{Reason: "network_not_empty", Text: err.Error()}
	}
	return f, err
}

// socketsPort makes sockets inside leaves.
type socketsPort struct{}

func (socketsPort) Listen(ctx context.Context, l helper.Leaf, uid uint32, p lease.Protocol, at netip.AddrPort) (*os.File, netip.AddrPort, error) {
	leaf, ok := l.(*cgroup.Leaf)
	if !ok {
		return nil, netip.AddrPort{}, fmt.Errorf("listen: %T is no leaf of this host", l)
	}
	dir, err := leaf.Dup() // the box may end meanwhile, and its descriptor with it
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	defer dir.Close()
	return listen.In(ctx, dir, uid, p == lease.TCP, at)
}
