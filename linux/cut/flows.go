package cut

import (
	"net/netip"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux/nft"
	"github.com/gominimal/minhost/linux/sockdiag"
)

// Protocol numbers.
const (
	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
)

// Socket is one TCP or UDP socket of the host's network namespace.
type Socket = sockdiag.Socket

// Tracked is one entry of connection tracking: the flow as it began, and as its replies come back.
type Tracked struct {
	Protocol           uint8
	From, To           netip.AddrPort // original direction
	Answers, AnswersTo netip.AddrPort // reply direction: who answers, and where to
	Mark               uint32
	tuple              []byte // the original tuple, to name the entry
	family             uint8
}

// Box says whose flows are judged, and by what.
type Box struct {
	Verdict lease.Verdict
	// Groups are the cgroup ids of the leaf and those below it.
	Groups map[uint64]bool
	Place  lease.Place
	// Owner tells the lease number of the box that a cgroup is in, 0 for none.
	Owner func(cgroup uint64) uint16
}

// ends is what has to be done.
type ends struct {
	sockets []Socket
	mark    []Tracked // TCP
	forget  []Tracked // the rest
	renew   []Tracked // flows of an older policy that this one admits
}

type pair struct {
	protocol uint8
	from, to netip.AddrPort
}

// view is the host at one moment, indexed.
type view struct {
	box    Box
	marks  nft.Marks
	byEnds map[pair]Socket   // connected sockets, local to remote
	ports  map[pair][]Socket // UDP sockets by local port, from only
	began  map[pair]Tracked  // by what the beginner's socket has
	taken  map[pair]Tracked  // by what the other end's socket has
}

func look(box Box, marks nft.Marks, sockets []Socket, tracked []Tracked) view {
	v := view{box, marks, map[pair]Socket{}, map[pair][]Socket{}, map[pair]Tracked{}, map[pair]Tracked{}}
	for _, s := range sockets {
		if s.Remote.IsValid() {
			v.byEnds[pair{s.Protocol, s.Local, s.Remote}] = s
		}
		if s.Protocol == protoUDP {
			k := pair{protocol: protoUDP, from: netip.AddrPortFrom(netip.Addr{}, s.Local.Port())}
			v.ports[k] = append(v.ports[k], s)
		}
	}
	for _, t := range tracked {
		v.began[pair{t.Protocol, t.From, t.To}] = t
		v.taken[pair{t.Protocol, t.Answers, t.AnswersTo}] = t
	}
	return v
}

// judge decides. Pure.
func judge(box Box, marks nft.Marks, sockets []Socket, tracked []Tracked) ends {
	v := look(box, marks, sockets, tracked)
	var e ends
	for _, s := range sockets {
		if f, ok := v.flowOf(s); ok && !box.Verdict.Admits(f, box.Place) {
			e.sockets = append(e.sockets, s)
		}
	}
	for _, t := range tracked {
		switch {
		case marks.HasEnded(t.Mark):
		case box.Verdict.Admits(v.flow(t), box.Place):
			if v.started(t) && (t.Mark^marks.Started(box.Verdict.Number, box.Verdict.Generation))&marks.Generation() != 0 {
				e.renew = append(e.renew, t)
			}
		case t.Protocol == protoTCP:
			e.mark = append(e.mark, t)
		default:
			e.forget = append(e.forget, t)
		}
	}
	return e
}

// flowOf finds out whether a socket is the box's end of a flow that can be ended, and which.
func (v view) flowOf(s Socket) (lease.Flow, bool) {
	if !s.Remote.IsValid() {
		return lease.Flow{}, false
	}
	began, isBegan := v.began[pair{s.Protocol, s.Local, s.Remote}]
	taken, isTaken := v.taken[pair{s.Protocol, s.Local, s.Remote}]
	// A sub-cgroup may be gone while its sockets live: then the mark of the flow tells. (Of a datagram
	// flow it does not: the entry outlives the socket, and the port may be a host process's now.)
	marked := s.Protocol == protoTCP && (isBegan && v.started(began) || isTaken && v.admitted(taken))
	if !v.box.Groups[s.Cgroup] && !marked {
		return lease.Flow{}, false
	}
	if isTaken && v.admitted(taken) && !(isBegan && v.started(began)) {
		return v.flow(taken), true
	}
	f := lease.Flow{Protocol: protocol(s.Protocol), To: s.Remote, Via: s.Remote}
	if isBegan {
		f.Via = began.Answers
	}
	if other, ok := v.byEnds[pair{s.Protocol, s.Remote, s.Local}]; ok && v.box.Groups[other.Cgroup] || isBegan && v.admitted(began) {
		f.From = lease.Self
	}
	// Each datagram is judged by itself, at the receiver when it is on this host; and a lookup of a
	// confined box is redirected whatever its socket is connected to.
	if s.Protocol == protoUDP && (v.local(s.Remote.Addr()) || s.Remote.Port() == 53 && v.box.Verdict.Policy.Confined()) {
		return lease.Flow{}, false
	}
	return f, true
}

// flow of an entry: every one carries the mark of this lease.
func (v view) flow(t Tracked) lease.Flow {
	f := lease.Flow{Protocol: protocol(t.Protocol), To: t.To, Via: t.Answers}
	if !v.admitted(t) {
		return f
	}
	f.Inbound, f.To = true, t.Answers
	f.Via = f.To
	if t.Protocol == protoTCP {
		if s, ok := v.byEnds[pair{protoTCP, t.From, t.To}]; ok {
			f.From, f.Sender = v.owner(s)
		}
		return f
	}
	if !v.local(t.From.Addr()) {
		return f
	}
	f.From = lease.ThisHost
	for _, s := range v.ports[pair{protocol: protoUDP, from: netip.AddrPortFrom(netip.Addr{}, t.From.Port())}] {
		if a := s.Local.Addr(); t.Protocol != protoUDP || a != t.From.Addr() && !a.IsUnspecified() {
			continue
		}
		if f.From, f.Sender = v.owner(s); f.From != lease.ThisHost {
			break
		}
	}
	return f
}

func (v view) owner(s Socket) (lease.Source, uint16) {
	switch n := v.box.Owner(s.Cgroup); {
	case v.box.Groups[s.Cgroup] || n != 0 && n == v.box.Verdict.Number:
		return lease.Self, 0
	case n != 0:
		return lease.OtherBox, n
	}
	return lease.ThisHost, 0
}

func (v view) local(a netip.Addr) bool { return v.box.Place.Local != nil && v.box.Place.Local(a) }

const flowMask = 0xffff

// admitted and started read the mark that the table gave a flow of this lease.
func (v view) admitted(t Tracked) bool {
	return t.Mark&(v.marks.Lease|v.marks.Host|flowMask) == v.marks.Admitted(v.box.Verdict.Number)
}

func (v view) started(t Tracked) bool {
	return t.Mark&(v.marks.Lease|v.marks.Host|flowMask) == v.marks.Started(v.box.Verdict.Number, 0)
}

func protocol(p uint8) lease.Protocol {
	switch p {
	case protoTCP:
		return lease.TCP
	case protoUDP:
		return lease.UDP
	case protoICMP, protoICMPv6:
		return lease.ICMP
	}
	return lease.Any
}
