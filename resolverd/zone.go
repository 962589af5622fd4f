package resolverd

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/gominimal/minhost/resolverd/zonefile"
)

// Origin is the zone that is served.
const Origin = zonefile.Origin

// localhost is what the reserved names answer on the host, boxHost what "host" answers in a box.
var (
	localhost = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	boxHost   = netip.AddrFrom4([4]byte{127, 0, 64, 254})
)

// View is who asks: it decides the address of host.min.internal and the answer for names outside
// the zone.
type View uint8

const (
	// HostView is the host's: names outside the zone are refused, so that a resolver that was
	// set up badly goes on to its next server.
	HostView View = iota
	// BoxView is a confined box's, whose every lookup is sent here: names outside the zone do
	// not exist, which ends a lookup at once where a refusal would be retried for seconds.
	BoxView
)

// String names the view in logs.
func (v View) String() string {
	if v == BoxView {
		return "box"
	}
	return "host"
}

// Zone is the content of the zone at one moment. It never changes after it was made, and a nil Zone
// is an empty one.
type Zone struct {
	// names are folded wire names without the zone's labels, as in "\x03api\x03web". The value is
	// noAddr for a name that exists without an address: a stopped box, or a name above another.
	names  map[string][4]byte
	serial uint32
}

// noAddr is no address that a lease can have.
var noAddr [4]byte

// NewZone makes a zone of box names ("web", "api.web"). An invalid Addr is a held name whose box
// is stopped. Names and addresses must be such as zonefile admits.
func NewZone(names map[string]netip.Addr, serial uint32) (*Zone, error) {
	size := 0
	for name := range names {
		size += len(name) + 1
	}
	b := newBuilder(len(names), size)
	for name, addr := range names {
		if err := zonefile.CheckName(name); err != nil {
			return nil, fmt.Errorf("zone: %w", err)
		}
		if addr.IsValid() {
			if err := zonefile.CheckAddr(addr); err != nil {
				return nil, fmt.Errorf("zone: name %s: %w", name, err)
			}
		}
		b.add(name, addr)
	}
	return b.zone(serial), nil
}

// builder makes a Zone of names that were judged. Their wire forms are parts of one string, which is
// what keeps 10,000 names below a megabyte.
type builder struct {
	names map[string][4]byte
	text  strings.Builder
}

// newBuilder makes room for so many names, whose wire forms take so many octets.
func newBuilder(names, octets int) *builder {
	b := &builder{names: make(map[string][4]byte, names)}
	b.text.Grow(octets)
	return b
}

// add holds name, and every name above it as an empty non-terminal (RFC 8020: what has names
// below it exists).
func (b *builder) add(name string, addr netip.Addr) {
	start := b.text.Len()
	for label := range strings.SplitSeq(name, ".") {
		b.text.WriteByte(byte(len(label)))
		b.text.WriteString(label)
	}
	key := b.text.String()[start:]
	b.names[key] = noAddr
	if addr.IsValid() {
		b.names[key] = addr.As4()
	}
	for {
		key = key[1+int(key[0]):]
		if key == "" {
			return
		}
		if _, held := b.names[key]; !held {
			b.names[key] = noAddr
		}
	}
}

func (b *builder) zone(serial uint32) *Zone { return &Zone{names: b.names, serial: serial} }

// lookup finds the folded wire name of a box or of the host. The address is invalid when the name
// exists without one.
func (z *Zone) lookup(key []byte, v View) (addr netip.Addr, exists bool) {
	switch {
	case string(key) == "\x04host" && v == BoxView:
		return boxHost, true
	case string(key) == "\x04host", string(key) == "\x07minhost":
		return localhost, true
	case z == nil:
		return netip.Addr{}, false
	}
	four, exists := z.names[string(key)]
	if four == noAddr {
		return netip.Addr{}, exists
	}
	return netip.AddrFrom4(four), exists
}

// soaSerial is the zone's serial, 0 for the nil Zone.
func (z *Zone) soaSerial() uint32 {
	if z == nil {
		return 0
	}
	return z.serial
}

// Len is the number of names that exist, empty non-terminals included, reserved names not.
func (z *Zone) Len() int {
	if z == nil {
		return 0
	}
	return len(z.names)
}
