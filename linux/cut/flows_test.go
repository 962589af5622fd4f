package cut

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux/nft"
)

const (
	leaf    = 100
	below   = 101
	sibling = 200
	host    = 1
	number  = 7
)

func at(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func socket(p uint8, local, remote string, cgroup uint64) Socket {
	s := Socket{Protocol: p, Local: at(local), Cgroup: cgroup}
	if remote != "" {
		s.Remote = at(remote)
	}
	return s
}

func tracked(p uint8, from, to string, mark uint32) Tracked {
	return Tracked{Protocol: p, From: at(from), To: at(to), Answers: at(to), AnswersTo: at(from), Mark: mark}
}

func boxOf(p lease.Policy) Box {
	return Box{
		Verdict: lease.Verdict{Leaf: leaf, Number: number, Policy: p}, Groups: map[uint64]bool{leaf: true, below: true},
		Place: lease.Place{Local: func(a netip.Addr) bool { return a.IsLoopback() }},
		Owner: func(c uint64) uint16 { return map[uint64]uint16{leaf: number, below: number, sibling: 8}[c] },
	}
}

// What each kind of socket is judged as: mine or not, begun by the box or not, and by whom.
func TestJudge(t *testing.T) {
	m := nft.DefaultMarks()
	started, admitted := m.Started(number, 0), m.Admitted(number)
	deny := lease.Policy{Egress: lease.Deny, Ingress: lease.FromHost}
	none := lease.Policy{Egress: lease.Deny, Ingress: lease.FromNone}
	for _, c := range []struct {
		what    string
		policy  lease.Policy
		sockets []Socket
		tracked []Tracked
		want    string // local addresses of sockets that end
		mark    int
		forget  int
	}{
		{"outbound, sub-cgroup too, a host's not", deny, []Socket{
			socket(protoTCP, "10.0.0.1:1", "192.0.2.1:443", leaf), socket(protoTCP, "10.0.0.1:2", "192.0.2.1:443", below),
			socket(protoTCP, "10.0.0.1:3", "192.0.2.1:443", host)}, nil, "10.0.0.1:1 10.0.0.1:2", 0, 0},
		{"made in a sub-cgroup that is gone", deny, []Socket{socket(protoTCP, "10.0.0.1:1", "192.0.2.1:443", 999)},
			[]Tracked{tracked(protoTCP, "10.0.0.1:1", "192.0.2.1:443", started)}, "10.0.0.1:1", 1, 0},
		{"a host's datagram socket on a port that was the box's", deny, []Socket{socket(protoUDP, "10.0.0.1:1", "192.0.2.1:443", host)},
			[]Tracked{tracked(protoUDP, "10.0.0.1:1", "192.0.2.1:443", started)}, "", 0, 1},
		{"inbound from this host", deny, []Socket{socket(protoTCP, "127.0.0.1:80", "127.0.0.1:5", leaf), socket(protoTCP, "127.0.0.1:5", "127.0.0.1:80", host)},
			[]Tracked{tracked(protoTCP, "127.0.0.1:5", "127.0.0.1:80", admitted)}, "", 0, 0},
		{"inbound from this host, ingress none", none, []Socket{socket(protoTCP, "127.0.0.1:80", "127.0.0.1:5", leaf), socket(protoTCP, "127.0.0.1:5", "127.0.0.1:80", host)},
			[]Tracked{tracked(protoTCP, "127.0.0.1:5", "127.0.0.1:80", admitted)}, "127.0.0.1:80", 1, 0},
		{"inbound from a sibling", deny, []Socket{socket(protoTCP, "127.0.0.1:80", "127.0.0.1:5", leaf), socket(protoTCP, "127.0.0.1:5", "127.0.0.1:80", sibling)},
			[]Tracked{tracked(protoTCP, "127.0.0.1:5", "127.0.0.1:80", admitted)}, "127.0.0.1:80", 1, 0},
		{"inbound from outside", deny, []Socket{socket(protoTCP, "10.0.0.1:80", "192.0.2.1:5", leaf)},
			[]Tracked{tracked(protoTCP, "192.0.2.1:5", "10.0.0.1:80", admitted)}, "10.0.0.1:80", 1, 0},
		{"itself, ingress none", none, []Socket{socket(protoTCP, "127.0.0.1:80", "127.0.0.1:5", leaf), socket(protoTCP, "127.0.0.1:5", "127.0.0.1:80", below)},
			[]Tracked{tracked(protoTCP, "127.0.0.1:5", "127.0.0.1:80", admitted)}, "", 0, 0},
		{"inbound whose entry was flushed: what the table refuses ends", deny, []Socket{socket(protoTCP, "10.0.0.1:80", "192.0.2.1:5", leaf)}, nil, "10.0.0.1:80", 0, 0},
		{"already ended", deny, nil, []Tracked{tracked(protoTCP, "10.0.0.1:1", "192.0.2.1:443", started&^m.Host|m.Flow)}, "", 0, 0},
		{"datagrams", deny, []Socket{socket(protoUDP, "10.0.0.1:1", "192.0.2.1:443", leaf), socket(protoUDP, "0.0.0.0:2", "", leaf),
			socket(protoUDP, "127.0.0.1:3", "127.0.0.1:9", leaf), socket(protoUDP, "10.0.0.1:4", "192.0.2.1:53", leaf)},
			[]Tracked{tracked(protoUDP, "10.0.0.1:1", "192.0.2.1:443", started), tracked(protoUDP, "192.0.2.1:7", "10.0.0.1:2", admitted)}, "10.0.0.1:1", 0, 2},
		{"datagrams from this host, from itself, from a sibling", deny, []Socket{socket(protoUDP, "127.0.0.1:2", "", leaf),
			socket(protoUDP, "0.0.0.0:5", "", host), socket(protoUDP, "127.0.0.1:6", "", below), socket(protoUDP, "0.0.0.0:7", "", sibling)},
			[]Tracked{tracked(protoUDP, "127.0.0.1:5", "127.0.0.1:2", admitted), tracked(protoUDP, "127.0.0.1:6", "127.0.0.1:2", admitted),
				tracked(protoUDP, "127.0.0.1:7", "127.0.0.1:2", admitted)}, "", 0, 1},
	} {
		e := judge(boxOf(c.policy), m, c.sockets, c.tracked)
		var want []string
		for _, s := range e.sockets {
			want = append(want, s.Local.String())
		}
		if got := joined(want); got != c.want || len(e.mark) != c.mark || len(e.forget) != c.forget {
			t.Errorf("%s: ends %q, marks %d, forgets %d; want %q, %d, %d", c.what, got, len(e.mark), len(e.forget), c.want, c.mark, c.forget)
		}
	}
}

func joined(words []string) string {
	slices.Sort(words)
	out := ""
	for i, w := range words {
		if i > 0 {
			out += " "
		}
		out += w
	}
	return out
}
