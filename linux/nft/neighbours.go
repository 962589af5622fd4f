package nft

import (
	"fmt"
	"slices"
	"strings"
)

// chain is a chain of somebody else, as far as it says who that is and what it does to boxes.
type chain struct {
	family, table, name string
	// hook is "input" or "output" of a chain that filters there; "" for every other one.
	hook string
	// drops: packets that no rule takes are dropped.
	drops bool
	rules int
}

// Neighbour is another firewall of this host that packets of boxes pass too. Its refusals count: an accept
// of ours does not overrule a drop of another table, at whatever priority.
type Neighbour struct {
	Name   string // who writes such a table: "firewalld", "ufw", "docker", ...
	Tables []string
	// Drops is true when what leaves this host is dropped unless a rule there takes it.
	Drops bool
}

// String is one phrase for people.
func (n Neighbour) String() string {
	s := fmt.Sprintf("%s (%s)", n.Name, strings.Join(n.Tables, ", "))
	if n.Drops {
		s += ", which drops what it does not allow to leave"
	}
	return s
}

// writers are told by a table's name, or by how the chains in it are called; the first that fits counts.
var writers = []struct{ name, table, chain string }{
	{"firewalld", "firewalld", ""},
	{"ufw", "", "ufw"},
	{"docker", "", "DOCKER"},
	{"docker", "docker-bridges", ""},
	{"Tailscale", "", "ts-"},
	{"kube-proxy", "", "KUBE-"},
	{"kube-proxy", "kube-proxy", ""},
	{"libvirt", "", "LIBVIRT_"},
	{"libvirt", "libvirt_network", ""},
	{"fail2ban", "", "f2b-"},
	{"fail2ban", "f2b-table", ""},
	{"Podman", "netavark", ""},
	{"Podman", "", "NETAVARK"},
}

// neighbours sorts the chains of others into firewalls: only those with a chain that filters input or output,
// and that has a rule or drops. Without a name it is a table of an admin, of nftables.service mostly.
func neighbours(chains []chain) []Neighbour {
	var all []Neighbour
	for _, c := range chains {
		if c.hook == "" || c.rules == 0 && !c.drops {
			continue
		}
		for _, name := range writersOf(c, chains) {
			i := slices.IndexFunc(all, func(n Neighbour) bool { return n.Name == name })
			if i < 0 {
				all, i = append(all, Neighbour{Name: name}), len(all)
			}
			if table := c.family + " " + c.table; !slices.Contains(all[i].Tables, table) {
				all[i].Tables = append(all[i].Tables, table)
			}
			all[i].Drops = all[i].Drops || c.drops && c.hook == "output"
		}
	}
	slices.SortFunc(all, func(a, b Neighbour) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// writersOf names everybody who has chains in the table of c: in iptables' tables there may be several.
func writersOf(c chain, chains []chain) []string {
	var names []string
	for _, w := range writers {
		fits := w.table == c.table
		if w.chain != "" {
			fits = slices.ContainsFunc(chains, func(o chain) bool {
				return o.family == c.family && o.table == c.table && strings.HasPrefix(o.name, w.chain)
			})
		}
		if fits && !slices.Contains(names, w.name) {
			names = append(names, w.name)
		}
	}
	if len(names) == 0 {
		return []string{"nftables"}
	}
	return names
}
