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

// Zone is the content of the zone at one moment. It never changes after NewZone, and a nil Zone
// is an empty one.
type Zone struct {
	// names are folded wire names without the zone's labels, as in "\x03api\x03web". The value is
	// invalid for a name that exists without an address: a stopped box, or a name above another.
	names  map[string]netip.Addr
	serial uint32
}

// NewZone makes a zone of box names ("web", "api.web"). An invalid Addr is a held name whose box
// is stopped. Names and addresses must be such as zonefile admits.
func NewZone(names map[string]netip.Addr, serial uint32) (*Zone, error) {
	z := &Zone{names: make(map[string]netip.Addr, len(names)), serial: serial}
	for name, addr := range names {
		if err := zonefile.CheckName(name); err != nil {
			return nil, fmt.Errorf("zone: %w", err)
		}
		if addr.IsValid() {
			if err := zonefile.CheckAddr(addr); err != nil {
				return nil, fmt.Errorf("zone: name %s: %w", name, err)
			}
		}
		z.add(name, addr)
	}
	return z, nil
}

// add holds name, and every name above it as an empty non-terminal (RFC 8020: what has names
// below it exists).
func (z *Zone) add(name string, addr netip.Addr) {
	z.names[wireName(name)] = addr
	for {
		_, above, found := strings.Cut(name, ".")
		if !found {
			return
		}
		if key := wireName(above); !z.has(key) {
			z.names[key] = netip.Addr{}
		}
		name = above
	}
}

func (z *Zone) has(key string) bool {
	_, ok := z.names[key]
	return ok
}

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
	addr, exists = z.names[string(key)]
	return addr, exists
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

// wireName turns dotted labels into length-prefixed ones, without the root's.
func wireName(name string) string {
	var b strings.Builder
	for label := range strings.SplitSeq(name, ".") {
		b.WriteByte(byte(len(label)))
		b.WriteString(label)
	}
	return b.String()
}
