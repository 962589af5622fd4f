package nft

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
)

// tableName is the table's name; its family is inet.
const tableName = "minhost"

// Kinds of policies: the first word of every value of the map of policies, before the id.
const (
	policyListed       = 1 // a list, perhaps an empty one
	policyOpen         = 2
	policyListedDenies = 3 // the same with denied subnets
	policyOpenDenies   = 4
)

// Types of addresses (linux/rtnetlink.h).
const (
	addrLocal, addrBroadcast, addrAnycast, addrMulticast = 2, 3, 4, 5
)

// kind is the type of one field of a set's key or data. Concatenated fields are padded to four bytes.
type kind struct {
	name  string
	bytes uint32
	magic uint32 // the nft program's number for it, so that it can list our sets
}

// Types of fields. Marks and cgroup ids are in host byte order, the rest as on the wire.
var (
	kMark    = kind{"mark", 4, 19}
	kCgroup  = kind{"cgroupsv2", 8, 46}
	kAddr4   = kind{"ipv4_addr", 4, 7}
	kAddr6   = kind{"ipv6_addr", 16, 8}
	kProto   = kind{"inet_proto", 1, 12}
	kService = kind{"inet_service", 2, 13}

	kAddrType = kind{"fib_addrtype", 4, 38}
)

func (k kind) padded() uint32 { return (k.bytes + 3) &^ 3 }

// Set is one named set or map with what it must hold.
type Set struct {
	Name     string
	Key      []kind
	Data     []kind // of a map
	Interval bool
	// Dynamic sets are filled by packets: their elements are not part of the wanted state.
	Dynamic bool
	// Timeout of the elements of a dynamic set, in seconds; 0 for none.
	Timeout uint32
	// Timed: elements may have an end of their own.
	Timed bool
	// Counted elements count the packets that find them.
	Counted  bool
	Elements []Element
}

// Element is one element as bytes, comparable. End is the last key of an interval, inclusive; Data
// is a map's value; Until is when the kernel drops it, see ends.
type Element struct {
	Key, End, Data string
	Until          int64
}

// setElement is an element with the name of its set.
type setElement struct {
	set string
	Element
}

func (s Set) keyLen() uint32 {
	return lengthOf(s.Key)
}

// keyMagic concatenates the types as the nft program does: six bits each.
func (s Set) keyMagic() uint32 { return magicOf(s.Key) }

func lengthOf(kinds []kind) (n uint32) {
	for _, k := range kinds {
		n += k.padded()
	}
	return n
}

func magicOf(kinds []kind) (m uint32) {
	for _, k := range kinds {
		m = m<<6 | k.magic
	}
	return m
}

// definition is what has to be equal for a set of the kernel to be used as it is.
func (s Set) definition() string {
	var b strings.Builder
	if s.Data != nil {
		b.WriteString("map ")
	} else {
		b.WriteString("set ")
	}
	fmt.Fprintf(&b, "%s type %#x key %d", s.Name, s.keyMagic(), s.keyLen())
	if s.Data != nil {
		fmt.Fprintf(&b, " : type %#x len %d", magicOf(s.Data), lengthOf(s.Data))
	}
	if s.Interval {
		b.WriteString(" interval")
	}
	if s.Dynamic {
		b.WriteString(" dynamic")
	}
	if s.Timeout != 0 || s.Timed {
		b.WriteString(" timeout")
	}
	if s.Counted {
		b.WriteString(" counter")
	}
	return b.String()
}

// Fields of keys.

func fMark(v uint32) string { return string(binary.NativeEndian.AppendUint32(nil, v)) }

func fCgroup(v uint64) string { return string(binary.NativeEndian.AppendUint64(nil, v)) }
func fAddr(a netip.Addr) string {
	return string(a.AsSlice())
}
func fProto(v uint8) string    { return string([]byte{v, 0, 0, 0}) }
func fService(v uint16) string { return string([]byte{byte(v >> 8), byte(v), 0, 0}) }

// setNames in the order in which they are written; each is used by a rule.
const (
	setPolicy    = "policyof"  // leaf : kind . policy id; a leaf that is not in it is refused everything
	setLease     = "lease"     // leaf : packet mark of what it sends to a local address
	setLeaseHost = "leasehost" // leaf : the same, its rules admit the destination
	setCtLease   = "ctlease"   // leaf : conntrack mark of flows admitted to it
	setCtOut     = "ctout"     // leaf : conntrack mark of flows it started
	setSelf      = "self"      // leaf . conntrack mark of flows admitted to it
	setJudged    = "judged"    // leaf . conntrack mark of flows that it started under the policy of now
	setSelfMark  = "selfmark"  // leaf . packet marks of what it sends to local addresses
	setOwn       = "own"       // leaf . conntrack marks of all its flows
	setSent      = "sent"      // leaves, asked for packets that were judged and approved
	setMet       = "met"       // leaves, asked for packets to them that belong to no flow of theirs yet
	setSelfAddr  = "selfaddr"  // packet mark . own address . own address
	setAddress   = "address"   // leaf . own address
	setInAny     = "inany"     // leaf . protocol . port that others may reach
	setInBox     = "inbox"     // leaf . packet mark of a box that it lets in
	setInBoxes   = "inboxes"   // leaves that let every box in
	setInNone    = "innone"    // leaves that not even the host may reach
	setCutting   = "cutting"   // leaves whose flows are being ended by a new policy
	setUncut     = "uncut"     // leaf . conntrack marks of all its flows, where ending them failed
	setAllow4    = "allow4"    // policy . destination . protocol . port
	setAllow6    = "allow6"
	setDeny4     = "deny4" // policy . destination
	setDeny6     = "deny6"
	setDNS4      = "dns4" // policy . destination . protocol of name servers that a rule names with port 53
	setDNS6      = "dns6"
	setAnswerer4 = "answerer4" // address . protocol . port of the answerer and its box view
	setAnswerer6 = "answerer6"
	setShared    = "shared"  // kinds of addresses that reach everybody's sockets
	setFlows     = "flows"   // conntrack entries of each leaf, filled by packets
	setNoise     = "noise"   // refusals of each lease lately, filled by packets
	setLookups   = "lookups" // lookups of each leaf lately, filled by packets
)

// emptySets describes every set without elements.
func emptySets() []Set {
	mark := []kind{kMark}
	return []Set{
		{Name: setPolicy, Key: []kind{kCgroup}, Data: []kind{kMark, kMark}},
		{Name: setLease, Key: []kind{kCgroup}, Data: mark, Counted: true},
		{Name: setLeaseHost, Key: []kind{kCgroup}, Data: mark},
		{Name: setCtLease, Key: []kind{kCgroup}, Data: mark},
		{Name: setCtOut, Key: []kind{kCgroup}, Data: mark},
		{Name: setSelf, Key: []kind{kCgroup, kMark}, Counted: true},
		{Name: setJudged, Key: []kind{kCgroup, kMark}, Timed: true, Counted: true},
		{Name: setSelfMark, Key: []kind{kCgroup, kMark}},
		{Name: setOwn, Key: []kind{kCgroup, kMark}, Counted: true},
		{Name: setSent, Key: []kind{kCgroup}, Counted: true},
		{Name: setMet, Key: []kind{kCgroup}, Counted: true},
		{Name: setSelfAddr, Key: []kind{kMark, kAddr4, kAddr4}},
		{Name: setAddress, Key: []kind{kCgroup, kAddr4}},
		{Name: setInAny, Key: []kind{kCgroup, kProto, kService}, Interval: true},
		{Name: setInBox, Key: []kind{kCgroup, kMark}},
		{Name: setInBoxes, Key: []kind{kCgroup}},
		{Name: setInNone, Key: []kind{kCgroup}},
		{Name: setCutting, Key: []kind{kCgroup}},
		{Name: setUncut, Key: []kind{kCgroup, kMark}},
		{Name: setAllow4, Key: []kind{kMark, kAddr4, kProto, kService}, Interval: true, Timed: true},
		{Name: setAllow6, Key: []kind{kMark, kAddr6, kProto, kService}, Interval: true, Timed: true},
		{Name: setDeny4, Key: []kind{kMark, kAddr4}, Interval: true},
		{Name: setDeny6, Key: []kind{kMark, kAddr6}, Interval: true},
		{Name: setDNS4, Key: []kind{kMark, kAddr4, kProto}, Interval: true},
		{Name: setDNS6, Key: []kind{kMark, kAddr6, kProto}, Interval: true},
		{Name: setAnswerer4, Key: []kind{kAddr4, kProto, kService}},
		{Name: setAnswerer6, Key: []kind{kAddr6, kProto, kService}},
		{Name: setShared, Key: []kind{kAddrType}},
		{Name: setFlows, Key: []kind{kCgroup}, Dynamic: true},
		{Name: setNoise, Key: []kind{kMark}, Dynamic: true, Timeout: 60},
		{Name: setLookups, Key: []kind{kCgroup}, Dynamic: true, Timeout: 60},
	}
}
