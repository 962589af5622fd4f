package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/linux"
	"github.com/gominimal/minhost/linux/nft"
)

// kernel tries what the table needs in a throw-away namespace: a distribution's version says little.
func (c groundChecker) kernel(ctx context.Context) api.Check {
	check := api.Check{Name: "the kernel has what the table needs", State: api.CheckStateOK, Detail: "tried in a network namespace of its own"}
	missing, err := nft.Missing(ctx)
	switch {
	case err != nil:
		check.State, check.Detail = api.CheckStateUnknown, api.Text(err.Error())
	case len(missing) > 0:
		check.State, check.Detail = api.CheckStateFailed, api.Text(strings.Join(missing, "; "))
		check.Loses, check.Next = "no box can be confined; names, addresses and boxes with egress open can be had", "load or build the named parts of the kernel"
	}
	return check
}

// Where the kernel tells how full its connection table is.
const (
	trackedNow = "/proc/sys/net/netfilter/nf_conntrack_count"
	trackedMax = "/proc/sys/net/netfilter/nf_conntrack_max"
)

// tracking warns before the kernel's table of connections is full: it drops new ones then, everybody's.
func (groundChecker) tracking() api.Check {
	check := api.Check{Name: "room for connections", State: api.CheckStateOK}
	now, err := number(trackedNow)
	limit := 0
	if err == nil {
		limit, err = number(trackedMax)
	}
	if err != nil {
		check.State, check.Detail = api.CheckStateUnknown, api.Text(err.Error())
		return check
	}
	check.Detail = fmt.Sprintf("%d of %d connections are tracked", now, limit)
	if limit > 0 && now*5 >= limit*4 {
		check.State, check.Loses = api.CheckStateWarning, "when the table is full the kernel drops new connections of boxes and host"
		check.Next = "conntrack -L shows whose they are; sysctl net.netfilter.nf_conntrack_max raises the limit"
	}
	return check
}

// migrates says whether connections outlive their listeners (net.ipv4.tcp_migrate_req, off unless an admin switches it on).
const migrates = "/proc/sys/net/ipv4/tcp_migrate_req"

// migration warns where a box can be left a connection of the host's, which has the host's verdict for good. No hook
// sees one change hands.
func (groundChecker) migration() []api.Check {
	if on, err := number(migrates); err != nil || on == 0 {
		return nil
	}
	return []api.Check{{Name: "connections end with their listeners", State: api.CheckStateWarning,
		Detail: "net.ipv4.tcp_migrate_req is on: one that waits at a listener of the host's goes to a box's of the same account and port (SO_REUSEPORT)",
		Loses:  "a confined box that shares a port with the host can get a connection that nothing confines", Next: "sysctl net.ipv4.tcp_migrate_req=0"}}
}

func number(path string) (int, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// marks looks for others that set or use the mark bits of boxes.
func (c groundChecker) marks(ctx context.Context) api.Check {
	check := api.Check{Name: "nobody else uses the marks", State: api.CheckStateOK}
	bits := c.ground.Marks.OrDefault().Bits() | c.ground.Planes.Bits()
	var clashes []string
	tree, err := c.ground.Tree()
	if err == nil {
		defer tree.Close()
		var table *nft.Table
		if table, err = c.ground.TableOf(tree); err == nil {
			defer table.Close()
			clashes, err = table.MarkClashes(ctx)
		}
	}
	routing, rerr := linux.RoutingByMark(bits)
	clashes = append(clashes, routing...)
	if err = errors.Join(err, rerr); err != nil {
		check.State, check.Detail = api.CheckStateUnknown, api.Text(err.Error())
		return check
	}
	check.Detail = fmt.Sprintf("no rule of nftables or iptables, the older one too, and no policy routing rule has the bits %#x", bits)
	if len(clashes) > 0 {
		check.State, check.Detail = api.CheckStateWarning, api.Text(strings.Join(clashes, "; "))
		check.Loses, check.Next = "packets of boxes may be refused or take another route", "move the other rule's mark, or ours: marks in "+linux.DefaultLayout().Config
	}
	return check
}
