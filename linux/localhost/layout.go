package localhost

import (
	"encoding/binary"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// Offsets in the structures that the kernel shows to programs; see linux/bpf.h.
const (
	ctxIP4      = 4 // struct bpf_sock_addr
	ctxIP6      = 8
	ctxPort     = 24
	ctxProtocol = 36
	ctxSrcIP4   = 40
	ctxSocket   = 64

	sockSrcIP4  = 24 // struct bpf_sock
	sockSrcIP6  = 28
	sockSrcPort = 44
	sockDstIP4  = 52
	sockDstIP6  = 56
	sockState   = 72
	sockFamily  = 4
	sockProto   = 12

	// commonFlags is the octet of struct sock_common with skc_ipv6only. bpf_sock does not show it.
	commonFlags = 19
)

const (
	protocolTCP      = 6
	protocolUDP      = 17
	familyIP4        = 2
	familyIP6        = 10
	stateEstablished = 1  // TCP_ESTABLISHED; UDP: connected
	stateClose       = 7  // TCP_CLOSE: bound or new; also every UDP socket that is not connected
	stateListen      = 10 // TCP_LISTEN
)

// Flags of a home, what the programs do for a box.
const (
	flagOwn       = 1 << iota // it has its own localhost
	flagUDPWild               // UDP wildcards with a fixed port are rewritten
	flagOpenAll               // every port is open to other interfaces: wildcards stay
	flagOpenPorts             // the ports in the map of ports are
)

// Names of the maps, at most 15 octets. A map whose layout changes gets a new name: maps outlive versions.
const (
	mapHomes  = "minhost_homes"  // leaf id: own address, flags
	mapOwners = "minhost_owners" // own address: leaf id
	mapPorts  = "minhost_ports"  // leaf id, port: stays wildcard
	mapNotes  = "minhost_notes"  // socket: what was asked
	mapSixes  = "minhost_sixes"  // leaf id, port, protocol: port of [::1] that stands for it
)

// Offsets in a note, beside a socket: the local name that bind was asked for and the peer's that connect or
// send was, as IPv6 addresses (mapped ones for IPv4) and ports in network order; port 0 is as it is.
const (
	noteLocalSet  = 0
	noteLocalPort = 4
	noteLocal     = 8
	notePeerSet   = 24
	notePeerPort  = 28
	notePeer      = 32
	noteLeaf      = 48 // of the box whose port of [::1] it is
	noteSize      = 56
)

// maxBoxes is how many lease numbers there are; maxPorts bounds what ingress ports of all boxes may take.
const (
	maxBoxes = 65535
	maxPorts = 1 << 18
	maxSixes = 1 << 16
)

// noPrealloc takes memory as elements come; clone copies a note from a listener to what it accepts.
const (
	noPrealloc = 1 << 0
	clone      = 1 << 9
)

// mapSpecs are the maps that the programs share.
func mapSpecs() []*ebpf.MapSpec {
	word := &btf.Int{Name: "unsigned int", Size: 4}
	note := &btf.Struct{Name: "minhost_note", Size: noteSize, Members: []btf.Member{
		{Name: "words", Type: &btf.Array{Index: word, Type: word, Nelems: noteSize / 4}}}}
	return []*ebpf.MapSpec{
		{Name: mapHomes, Type: ebpf.Hash, KeySize: 8, ValueSize: 8, MaxEntries: maxBoxes, Flags: noPrealloc},
		{Name: mapOwners, Type: ebpf.Hash, KeySize: 4, ValueSize: 8, MaxEntries: maxBoxes, Flags: noPrealloc},
		{Name: mapPorts, Type: ebpf.Hash, KeySize: 16, ValueSize: 4, MaxEntries: maxPorts, Flags: noPrealloc},
		{Name: mapNotes, Type: ebpf.SkStorage, KeySize: 4, ValueSize: noteSize, Flags: noPrealloc | clone,
			Key: &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}, Value: note},
		{Name: mapSixes, Type: ebpf.Hash, KeySize: 16, ValueSize: 4, MaxEntries: maxSixes, Flags: noPrealloc},
	}
}

// word is four octets as a program loads them.
func word(a, b, c, d byte) int32 {
	return int32(binary.NativeEndian.Uint32([]byte{a, b, c, d}))
}

// Words of addresses.
var (
	mappedWord = word(0, 0, 255, 255) // third word of ::ffff:a.b.c.d
	oneWord    = word(0, 0, 0, 1)     // last word of ::1
	loopback   = word(127, 0, 0, 1)
	hostWord   = word(127, 0, 64, 254) // lease.HostAddress
)

// sixOnlyBit is skc_ipv6only in that octet; the order of bit fields follows that of the octets.
var sixOnlyBit = func() int32 {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return 1 << 5
	}
	return 1 << 2
}()
