package report

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is a kind of reply.
type Kind uint8

// The kinds, in the order in which they are written.
const (
	Address   Kind = iota // an address, or another record that was asked for
	NoData                // the name is held, without such a record
	NoName                // no such name in the zone
	Outside               // a name outside the zone, to a box: no such name
	Declined              // a name outside the zone, a transfer, another class
	Malformed             // FORMERR, BADVERS
	Opcode                // NOTIMP
	Truncated             // did not fit in UDP
	Silent                // no reply: not a query, or the asker is not on this host
	Untold                // refused names that the helper was not told: too many, or no helper
	Kinds
)

// names are as in the datagram and wherever counters are shown.
var names = [Kinds]string{"address", "nodata", "nxdomain", "outside", "refused", "malformed", "opcode", "truncated", "silent", "untold"}

// String is the name of the kind in datagrams and on screens.
func (k Kind) String() string {
	if k < Kinds {
		return names[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// Counters are how many replies of each kind an answerer gave since it started.
type Counters [Kinds]uint64

// Attrs are the counters that are not 0, for a log line.
func (c Counters) Attrs() []any {
	var attrs []any
	for k, n := range c {
		if n > 0 {
			attrs = append(attrs, Kind(k).String(), n)
		}
	}
	return attrs
}

// Encode renders the datagram.
func (c Counters) Encode() []byte {
	var b []byte
	b = append(b, countersMagic[:len(countersMagic)-1]...)
	for k, n := range c {
		b = fmt.Appendf(b, " %s=%d", Kind(k), n)
	}
	return b
}

// DecodeCounters reads what Encode wrote. Kinds that it does not know are left out, and kinds that
// are missing are 0: answerer and helper are restarted one after the other in an upgrade.
func DecodeCounters(b []byte) (Counters, error) {
	rest, ok := strings.CutPrefix(string(b), countersMagic)
	if !ok || len(b) > MaxBytes {
		return Counters{}, fmt.Errorf("report of %d octets: not counters", len(b))
	}
	var c Counters
	for field := range strings.SplitSeq(rest, " ") {
		name, text, _ := strings.Cut(field, "=")
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return Counters{}, fmt.Errorf("report of %d octets: a counter is no number", len(b))
		}
		if k := kindNamed(name); k < Kinds {
			c[k] = n
		}
	}
	return c, nil
}
