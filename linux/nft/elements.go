package nft

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/gominimal/minhost/installer/lease"
)

// fixedElements are those that do not depend on any box.
func fixedElements(c Config) []setElement {
	var out []setElement
	lo4, lo6 := netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()
	for _, proto := range []uint8{protoTCP, protoUDP} {
		for _, port := range []uint16{c.Answerer, c.BoxView} {
			out = append(out, setElement{setAnswerer4, Element{Key: fAddr(lo4) + fProto(proto) + fService(port)}})
		}
		out = append(out, setElement{setAnswerer6, Element{Key: fAddr(lo6) + fProto(proto) + fService(c.BoxView)}})
	}
	for _, kind := range []uint32{addrBroadcast, addrAnycast, addrMulticast} {
		out = append(out, setElement{setShared, Element{Key: fMark(kind)}})
	}
	return out
}

// policyValue is what the map of policies has for a leaf.
func policyValue(v lease.Verdict, id uint32) string {
	kind := uint32(policyListed)
	switch open, denies := v.Policy.Egress == lease.Open, len(v.Policy.DenySubnets) > 0 || v.Uncut; {
	case open && denies:
		kind = policyOpenDenies
	case open:
		kind = policyOpen
	case denies:
		kind = policyListedDenies
	}
	return fMark(kind) + fMark(id)
}

// policyID reads it.
func policyID(value string) (id uint32, ok bool) {
	if len(value) != 8 {
		return 0, false
	}
	return binary.NativeEndian.Uint32([]byte(value[4:])), true
}

// leafElements are those of one box, whatever its rules.
func leafElements(m Marks, v lease.Verdict, policy uint32) []setElement {
	leaf, n := fCgroup(v.Leaf), uint32(v.Number)
	in, started := m.Admitted(v.Number), m.Started(v.Number, v.Generation)
	sent, sentHost := m.Lease|n, m.Lease|m.Host|n
	out := []setElement{
		{setPolicy, Element{Key: leaf, Data: policyValue(v, policy)}},
		{setLease, Element{Key: leaf, Data: fMark(m.Belt | sent)}},
		{setLeaseHost, Element{Key: leaf, Data: fMark(m.Belt | sentHost)}},
		{setCtLease, Element{Key: leaf, Data: fMark(in)}},
		{setCtOut, Element{Key: leaf, Data: fMark(started)}},
		{setSelfMark, Element{Key: leaf + fMark(sent)}},
		{setSelfMark, Element{Key: leaf + fMark(sentHost)}},
		{setSent, Element{Key: leaf}},
		{setMet, Element{Key: leaf}},
		{setOwn, Element{Key: leaf + fMark(started)}},
		{setOwn, Element{Key: leaf + fMark(m.Started(v.Number, v.Generation+1))}},
	}
	if v.Uncut {
		// What these began under an older policy is not told from what began since.
		for _, mark := range []uint32{in, started, m.Started(v.Number, v.Generation+1)} {
			out = append(out, setElement{setUncut, Element{Key: leaf + fMark(mark)}})
		}
	} else {
		out = append(out, setElement{setSelf, Element{Key: leaf + fMark(in)}}, setElement{setOwn, Element{Key: leaf + fMark(in)}})
	}
	if a := v.Address.Unmap(); a.Is4() {
		out = append(out,
			setElement{setAddress, Element{Key: leaf + fAddr(a)}},
			setElement{setSelfAddr, Element{Key: fMark(sent) + fAddr(a) + fAddr(a)}},
			setElement{setSelfAddr, Element{Key: fMark(sentHost) + fAddr(a) + fAddr(a)}})
	}
	if v.Cutting {
		// Every packet is judged until flows of older policies have ended: where the cut behind an update failed, those
		// from before it have the generation of the policy after it.
		out = append(out, setElement{setCutting, Element{Key: leaf}})
	} else {
		// Flows are judged anew once a rule has ended, whoever lives to notice.
		out = append(out, setElement{setJudged, Element{Key: leaf + fMark(started), Until: ends(v.Policy.NextEnd())}})
	}
	if v.Policy.Ingress == lease.FromNone {
		out = append(out, setElement{setInNone, Element{Key: leaf}})
	}
	return append(out, ingressElements(m, v)...)
}

// ingressElements are the boxes that a box lets in, and its ports that others than this host may reach. A port is meant for
// TCP and UDP.
func ingressElements(m Marks, v lease.Verdict) []setElement {
	leaf := fCgroup(v.Leaf)
	element := func(p, q uint8, s span) setElement {
		return setElement{setInAny, Element{Key: leaf + fProto(p) + fService(s.first), End: leaf + fProto(q) + fService(s.last)}}
	}
	var out []setElement
	for _, n := range v.From {
		out = append(out, setElement{setInBox, Element{Key: leaf + fMark(m.Lease|m.Host|uint32(n))}})
	}
	if v.FromEveryBox {
		out = append(out, setElement{setInBoxes, Element{Key: leaf}})
	}
	switch v.Policy.Ingress {
	case lease.FromAny:
		out = append(out, element(0, 255, span{0, 65535}))
	case lease.FromPorts:
		var ports []span
		for _, p := range v.Policy.IngressPorts {
			ports = append(ports, span{p, p})
		}
		for _, s := range union(ports) {
			out = append(out, element(protoTCP, protoTCP, s), element(protoUDP, protoUDP, s))
		}
	}
	return out
}

// compiled is what the rules of a policy cost, without an id: boxes with equal rules share it.
type compiled struct {
	allow4, allow6 []cell
	deny4, deny6   []addrs
	dns4, dns6     []cell
}

func compile(p lease.Policy) compiled {
	var dns []lease.Rule
	rules := p.Rules
	if p.Egress != lease.Rules {
		rules = nil
	}
	for _, r := range rules {
		if r.First == 53 && r.Last == 53 {
			dns = append(dns, r)
		}
	}
	return compiled{
		allow4: cells(rules, false), allow6: cells(rules, true),
		deny4: ranges(p.DenySubnets, false), deny6: ranges(p.DenySubnets, true),
		dns4: cells(dns, false), dns6: cells(dns, true),
	}
}

// key tells policies apart that need sets of their own.
func (c compiled) key() string {
	var b strings.Builder
	for _, e := range c.elements(0) {
		fmt.Fprintf(&b, "%s%x-%x@%d\n", e.set, e.Key, e.End, e.Until)
	}
	return b.String()
}

// elements of the policy under the id that its leaves are mapped to.
func (c compiled) elements(id uint32) []setElement {
	var out []setElement
	policy := fMark(id)
	for _, s := range []struct {
		set   string
		cells []cell
		ports bool
	}{{setAllow4, c.allow4, true}, {setAllow6, c.allow6, true}, {setDNS4, c.dns4, false}, {setDNS6, c.dns6, false}} {
		for _, x := range s.cells {
			e := Element{Key: policy + fAddr(x.from) + fProto(x.protoFirst), End: policy + fAddr(x.to) + fProto(x.protoLast)}
			if s.ports {
				e.Until = x.until
				e.Key += fService(x.ports.first)
				e.End += fService(x.ports.last)
			}
			out = append(out, setElement{s.set, e})
		}
	}
	for set, list := range map[string][]addrs{setDeny4: c.deny4, setDeny6: c.deny6} {
		for _, a := range list {
			out = append(out, setElement{set, Element{Key: policy + fAddr(a.from), End: policy + fAddr(a.to)}})
		}
	}
	slices.SortStableFunc(out, func(a, b setElement) int { return strings.Compare(a.set, b.set) })
	return out
}

// fill returns the sets with these elements, sorted, each once.
func fill(sets []Set, elements []setElement) []Set {
	by := map[string][]Element{}
	for _, e := range elements {
		by[e.set] = append(by[e.set], e.Element)
	}
	for i := range sets {
		es := by[sets[i].Name]
		slices.SortFunc(es, compareElements)
		sets[i].Elements = slices.Compact(es)
	}
	return sets
}

func compareElements(a, b Element) int {
	if c := strings.Compare(a.Key, b.Key); c != 0 {
		return c
	}
	if c := strings.Compare(a.End, b.End); c != 0 {
		return c
	}
	return cmp.Or(strings.Compare(a.Data, b.Data), cmp.Compare(a.Until, b.Until))
}
