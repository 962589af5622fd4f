package nft

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gominimal/minhost/installer/lease"
)

// packet is a destination with an IP protocol number and, where it has one, a port.
type packet struct {
	addr  netip.Addr
	proto uint8
	port  uint16
}

// admits is what a policy's rules mean, written without ranges or merging.
func admits(rules []lease.Rule, p packet) bool {
	for _, r := range rules {
		if r.To.Addr().Is4() != p.addr.Is4() || !r.To.Contains(p.addr) {
			continue
		}
		ports := r.AllPorts() || r.First <= p.port && p.port <= r.Last
		icmp := uint8(1)
		if p.addr.Is6() {
			icmp = 58
		}
		switch r.Protocol {
		case lease.TCP:
			if p.proto == 6 && ports {
				return true
			}
		case lease.UDP:
			if p.proto == 17 && ports {
				return true
			}
		case lease.ICMP:
			if p.proto == icmp {
				return true
			}
		case lease.Any:
			return true
		}
	}
	return false
}

// holding counts the elements of an allow set that a packet is in, as the kernel compares: each field
// between those of the two keys.
func holding(elements []setElement, p packet) int {
	set, n := setAllow4, 4
	if p.addr.Is6() {
		set, n = setAllow6, 16
	}
	between := func(from, v, to string) bool { return from <= v && v <= to }
	count := 0
	for _, e := range elements {
		if e.set == set &&
			between(e.Key[4:4+n], fAddr(p.addr), e.End[4:4+n]) &&
			between(e.Key[4+n:8+n], fProto(p.proto), e.End[4+n:8+n]) &&
			between(e.Key[8+n:12+n], fService(p.port), e.End[8+n:12+n]) {
			count++
		}
	}
	return count
}

// Few values, so that rules meet: neighbouring and nested prefixes, touching and crossing ports.
var (
	drawAddr = rapid.Custom(func(t *rapid.T) netip.Addr {
		low := rapid.SampledFrom([]byte{0, 1, 2, 127, 128, 255}).Draw(t, "low")
		mid := rapid.SampledFrom([]byte{0, 1, 255}).Draw(t, "mid")
		if rapid.Bool().Draw(t, "v6") {
			return netip.AddrFrom16([16]byte{0: 0x20, 14: mid, 15: low})
		}
		return netip.AddrFrom4([4]byte{10, 0, mid, low})
	})
	drawPort = rapid.SampledFrom([]uint16{1, 2, 52, 53, 54, 80, 65534, 65535})
	drawRule = rapid.Custom(func(t *rapid.T) lease.Rule {
		a := drawAddr.Draw(t, "to")
		p := netip.PrefixFrom(a, a.BitLen()-rapid.SampledFrom([]int{0, 1, 7, 8, 16, a.BitLen()}).Draw(t, "wide")).Masked()
		r := lease.Rule{To: p, Last: 65535, Protocol: rapid.SampledFrom([]lease.Protocol{lease.TCP, lease.UDP, lease.ICMP, lease.Any}).Draw(t, "protocol")}
		if (r.Protocol == lease.TCP || r.Protocol == lease.UDP) && rapid.Bool().Draw(t, "ports") {
			r.First, r.Last = drawPort.Draw(t, "first"), drawPort.Draw(t, "last")
			if r.First > r.Last {
				r.First, r.Last = r.Last, r.First
			}
		}
		return r
	})
	drawPacket = rapid.Custom(func(t *rapid.T) packet {
		return packet{drawAddr.Draw(t, "addr"), rapid.SampledFrom([]uint8{0, 1, 2, 6, 7, 17, 47, 58, 132, 255}).Draw(t, "proto"),
			rapid.OneOf(drawPort, rapid.Uint16()).Draw(t, "port")}
	})
)

// The elements of random rules admit exactly what the rules say, and no packet is in two of them: the
// kernel refuses elements that overlap.
func TestCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := rapid.SliceOfN(drawRule, 0, 12).Draw(t, "rules")
		elements := compile(lease.Policy{Egress: lease.Rules, Rules: rules}).elements(7)
		for _, p := range rapid.SliceOfN(drawPacket, 20, 40).Draw(t, "packets") {
			want := 0
			if admits(rules, p) {
				want = 1
			}
			if got := holding(elements, p); got != want {
				t.Fatalf("%v is in %d elements, want %d", p, got, want)
			}
			decides(t, rules, p, want == 1)
		}
	})
}

// decides requires that Explain's answer is the same, from the canonical policy as well.
func decides(t *rapid.T, rules []lease.Rule, p packet, want bool) {
	protocol, known := map[uint8]lease.Protocol{6: lease.TCP, 17: lease.UDP, 1: lease.ICMP, 58: lease.ICMP}[p.proto]
	if !known || p.addr.Is4() != (p.proto != 58) && protocol == lease.ICMP || len(rules) == 0 {
		return
	}
	policy := lease.Policy{Egress: lease.Rules, Rules: rules}
	canonical, err := policy.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []lease.Policy{policy, canonical} {
		if d := q.Decide(netip.AddrPortFrom(p.addr, p.port), protocol, lease.Place{}); d.Allowed != want || want && d.Rule == "" {
			t.Fatalf("%v %v: Decide says %+v, the sets %t", p, protocol, d, want)
		}
	}
}

// Ranges of deny subnets are disjoint, do not touch, and hold exactly the subnets.
func TestRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var prefixes []netip.Prefix
		for _, r := range rapid.SliceOfN(drawRule, 0, 8).Draw(t, "subnets") {
			prefixes = append(prefixes, r.To)
		}
		for _, v6 := range []bool{false, true} {
			rs := ranges(prefixes, v6)
			for i := 1; i < len(rs); i++ {
				if next := rs[i-1].to.Next(); !next.IsValid() || next.Compare(rs[i].from) >= 0 {
					t.Fatalf("%v overlap or touch", rs)
				}
			}
			a := drawAddr.Filter(func(a netip.Addr) bool { return a.Is6() == v6 }).Draw(t, "addr")
			want := slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
			got := slices.ContainsFunc(rs, func(r addrs) bool { return r.from.Compare(a) <= 0 && a.Compare(r.to) <= 0 })
			if got != want {
				t.Fatalf("%v in %v: %t", a, rs, got)
			}
		}
	})
}

// Merging keeps policies small where it can.
func TestFewCells(t *testing.T) {
	rule := func(to string, first, last uint16, p lease.Protocol) lease.Rule {
		return lease.Rule{To: netip.MustParsePrefix(to), First: first, Last: last, Protocol: p}
	}
	for name, c := range map[string]struct {
		rules []lease.Rule
		want  int
	}{
		"neighbours":      {[]lease.Rule{rule("10.0.0.0/25", 80, 80, lease.TCP), rule("10.0.0.128/25", 80, 80, lease.TCP)}, 1},
		"touching ports":  {[]lease.Rule{rule("10.0.0.0/8", 80, 89, lease.TCP), rule("10.0.0.0/8", 90, 99, lease.TCP)}, 1},
		"inside":          {[]lease.Rule{rule("10.0.0.0/8", 0, 65535, lease.TCP), rule("10.1.0.0/16", 80, 80, lease.TCP)}, 1},
		"any":             {[]lease.Rule{rule("0.0.0.0/0", 0, 65535, lease.Any), rule("10.1.0.0/16", 80, 80, lease.TCP)}, 1},
		"beside":          {[]lease.Rule{rule("0.0.0.0/0", 443, 443, lease.TCP), rule("10.0.0.1/32", 80, 80, lease.TCP)}, 2},
		"around":          {[]lease.Rule{rule("10.0.0.0/8", 80, 80, lease.TCP), rule("10.1.0.0/16", 0, 65535, lease.TCP)}, 3},
		"1 to 65535":      {[]lease.Rule{rule("::/0", 0, 65535, lease.Any)}, 1},
		"both families":   {[]lease.Rule{rule("::/0", 80, 80, lease.TCP), rule("0.0.0.0/0", 80, 80, lease.TCP)}, 2},
		"a name server":   {[]lease.Rule{rule("10.0.0.1/32", 53, 53, lease.UDP)}, 2},
		"no name server":  {[]lease.Rule{rule("10.0.0.1/32", 50, 60, lease.UDP)}, 1},
		"other protocols": {[]lease.Rule{rule("10.0.0.0/8", 80, 80, lease.TCP), rule("10.0.0.0/8", 80, 80, lease.UDP)}, 2},
	} {
		got := compile(lease.Policy{Egress: lease.Rules, Rules: c.rules}).elements(1)
		if len(got) != c.want {
			t.Errorf("%s: %d elements, want %d: %v", name, len(got), c.want, got)
		}
	}
}

// A history of changes leaves the same elements as a fresh start with its end, and every difference is
// exact: it deletes what is there and adds what is not.
func TestHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newState(DefaultMarks())
		kernel := map[setElement]bool{}
		policies := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) lease.Policy {
			return lease.Policy{
				Egress:  rapid.SampledFrom([]lease.Egress{lease.Deny, lease.Open, lease.Rules}).Draw(t, "egress"),
				Rules:   rapid.SliceOfN(drawRule, 0, 3).Draw(t, "rules"),
				Ingress: rapid.SampledFrom([]lease.Ingress{lease.FromHost, lease.FromAny, lease.FromNone}).Draw(t, "ingress"),
			}
		}), 1, 3).Draw(t, "policies")
		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			leaf := uint64(rapid.IntRange(1, 4).Draw(t, "leaf"))
			next := s.without(leaf)
			if rapid.Bool().Draw(t, "put") {
				next = s.with(lease.Verdict{Leaf: leaf, Number: uint16(leaf), Policy: rapid.SampledFrom(policies).Draw(t, "policy")})
			}
			del, add := change(s, next, leaf)
			for _, e := range del {
				if !kernel[e] {
					t.Fatalf("deletes %v, which is not there", e)
				}
				delete(kernel, e)
			}
			for _, e := range add {
				if kernel[e] {
					t.Fatalf("adds %v, which is there", e)
				}
				kernel[e] = true
			}
			s = next
		}
		want := s.elements()
		if len(want) != len(kernel) {
			t.Fatalf("%d elements, want %d", len(kernel), len(want))
		}
		for _, e := range want {
			if !kernel[e] {
				t.Fatalf("%v is missing", e)
			}
		}
		ids := map[uint64]uint32{}
		for leaf, e := range s.leaves {
			ids[leaf] = s.ids[e.key]
		}
		again := newState(s.marks)
		again.adopt(s.verdicts(), ids)
		if !slices.Equal(again.elements(), want) {
			t.Fatal("a new process would choose other ids")
		}
	})
}

func TestMarks(t *testing.T) {
	var marks []Marks
	for i := range 6 {
		for _, bit := range []uint32{0, 1 << 15, 3 << 24} {
			bad := DefaultMarks()
			*[]*uint32{&bad.Belt, &bad.Lease, &bad.Host, &bad.Ingress, &bad.Foreign, &bad.Flow}[i] = bit
			marks = append(marks, bad)
		}
	}
	same := DefaultMarks()
	same.Flow = same.Host
	for _, bad := range append(marks, same) {
		if bad.OrDefault().Check() == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
	for _, bad := range []Config{{Level: 2}, {Boxes: 1}, {Boxes: 1, Level: 255}} {
		if _, err := bad.normal(); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
	if m := (Marks{}).OrDefault(); m.Check() != nil || m != DefaultMarks() {
		t.Errorf("%+v", m)
	}
	// Ids are in host byte order: the kernel compares registers.
	if fCgroup(0x0102) != string(binary.NativeEndian.AppendUint64(nil, 0x0102)) {
		t.Error("byte order of cgroup ids")
	}
}
