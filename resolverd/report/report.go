// Package report is what the answerer tells the helper: names that a confined box looked up in vain,
// how many replies of each kind it gave, and for a minute, when somebody asks for that, every lookup.
//
// The answerer sends datagrams to a unix socket that the helper reads; neither waits for the other,
// and what cannot be sent is dropped and counted. The package turns the messages into bytes and
// back and moves them. It decides nothing: who may report is for the reader's judge, and what a
// refusal means for a box is the helper's matter.
//
// Format 1 is one line of printable ASCII a datagram, without its end, fields parted by one space:
//
//	minhost-refused 1 <lease number> <udp|tcp> <asker's address:port> <type number> <name>
//	minhost-counters 1 <kind>=<count> ...
//	minhost-repaired 1 <what was not right any more> (from root's keeper of the names link)
//	minhost-lookup 1 <host|box> <lease number> <udp|tcp> <asker's address:port> <type number> <kind> <missed> <name>
//
// The lease number is that of the packet's mark, 0 where the kernel did not tell it: over TCP, and
// where the answerer may not ask for marks. There the asker's address is what is known of it. The
// name was chosen by the box and comes in presentation form: letters, digits, "-" and "_" are
// themselves, every other octet is \DDD; at most 255 octets, and then an escape may be cut short.
// A reader takes nothing that it would write otherwise.
package report

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// MaxBytes bounds one datagram.
const MaxBytes = 1024

// MaxName bounds a name in presentation form, in octets.
const MaxName = 255

const (
	refusedMagic  = "minhost-refused 1 "
	countersMagic = "minhost-counters 1 "
)

// Refused is a name outside the zone that a confined box asked for.
type Refused struct {
	Lease   uint16 // number of the lease, 0 when unknown
	Network string // "udp" or "tcp"
	From    netip.AddrPort
	Type    uint16 // of the records it asked for
	Name    string // untrusted, in presentation form; Presentation makes it
}

// Presentation writes a wire name as text, without the dot of the root unless it is the root. What
// is no name gives what could be read of it.
func Presentation(name []byte) string {
	var b strings.Builder
	for len(name) > 0 && name[0] != 0 {
		size := min(1+int(name[0]), len(name))
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		for _, c := range name[1:size] {
			if plain(c) {
				b.WriteByte(c)
			} else {
				fmt.Fprintf(&b, `\%03d`, c)
			}
		}
		name = name[size:]
	}
	if b.Len() == 0 {
		return "."
	}
	return b.String()[:min(b.Len(), MaxName)]
}

func plain(c byte) bool {
	return c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// Encode renders the datagram.
func (r Refused) Encode() []byte {
	return fmt.Appendf(nil, "%s%d %s %s %d %s", refusedMagic, r.Lease, r.Network, r.From, r.Type, r.Name)
}

// DecodeRefused reads what Encode wrote and nothing else.
func DecodeRefused(b []byte) (Refused, error) {
	rest, ok := strings.CutPrefix(string(b), refusedMagic)
	fields := strings.Split(rest, " ")
	if !ok || len(b) > MaxBytes || len(fields) != 5 {
		return Refused{}, fmt.Errorf("report of %d octets: not a refused name", len(b))
	}
	number, err1 := strconv.ParseUint(fields[0], 10, 16)
	from, err2 := netip.ParseAddrPort(fields[2])
	qtype, err3 := strconv.ParseUint(fields[3], 10, 16)
	r := Refused{Lease: uint16(number), Network: fields[1], From: from, Type: uint16(qtype), Name: fields[4]}
	network := r.Network == "udp" || r.Network == "tcp"
	if err1 != nil || err2 != nil || err3 != nil || !network || !presentable(r.Name) || string(r.Encode()) != string(b) {
		return Refused{}, fmt.Errorf("report of %d octets: a field is not as it is written", len(b))
	}
	return r, nil
}

// presentable is true of what Presentation may have written.
func presentable(name string) bool {
	if name == "" || len(name) > MaxName {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !plain(c) && c != '.' && c != '\\' {
			return false
		}
	}
	return true
}
