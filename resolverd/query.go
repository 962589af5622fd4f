package resolverd

import (
	"encoding/binary"
	"errors"

	"github.com/miekg/dns"
)

// Sizes of the wire format, in octets (RFC 1035 sections 2.3.4 and 4.1).
const (
	headerSize  = 12
	maxWireName = 255
	maxLabel    = 63
	rrFixed     = 10 // type, class, TTL, length of the data
)

var errFormat = errors.New("query: not well-formed")

// query is what Answer understood of a message. It is read by hand, not by dns.Msg: the name must
// be echoed octet by octet, options that nobody acts on must not make a query an error, and
// nothing here follows a compression pointer.
type query struct {
	header   []byte
	opcode   int
	question []byte // as asked: name, type, class; nil when there is not exactly one readable question
	name     []byte // the question's name in wire form, as asked
	asked    string // the same in presentation form
	qtype    uint16
	qclass   uint16
	edns     *edns // nil when the query has no OPT record
}

// edns is the OPT record of a query (RFC 6891).
type edns struct {
	size    uint16 // UDP payload that the asker takes
	version uint8
	do      bool
}

// parseQuery reads a message. ok is false for what must be met with silence: too short to carry an
// id, or itself a response. With an error the query still holds what was read before it.
func parseQuery(msg []byte) (q query, ok bool, err error) {
	if len(msg) < headerSize || msg[2]&0x80 != 0 {
		return query{}, false, nil
	}
	q.header = msg[:headerSize]
	q.opcode = int(msg[2] >> 3 & 0xf)
	if binary.BigEndian.Uint16(msg[4:]) != 1 {
		return q, true, errFormat // RFC 9619: not one question
	}
	off, err := q.parseQuestion(msg)
	if err != nil {
		return q, true, err
	}
	return q, true, q.parseRecords(msg, off)
}

// parseQuestion reads the one question and returns the offset behind it.
func (q *query) parseQuestion(msg []byte) (int, error) {
	end, plain, err := skipName(msg, headerSize)
	if err != nil || !plain || end+4 > len(msg) {
		return 0, errFormat // a pointer here could only lead into the header
	}
	asked, _, err := dns.UnpackDomainName(msg[headerSize:end], 0)
	if err != nil {
		return 0, errFormat
	}
	q.name, q.asked = msg[headerSize:end], asked
	q.qtype = binary.BigEndian.Uint16(msg[end:])
	q.qclass = binary.BigEndian.Uint16(msg[end+2:])
	q.question = msg[headerSize : end+4]
	return end + 4, nil
}

// parseRecords walks the three sections of records. Their data is not looked at, but for the shape
// of OPT. Octets behind the last record are ignored, as BIND and NSD do.
func (q *query) parseRecords(msg []byte, off int) error {
	for section := range 3 {
		count := binary.BigEndian.Uint16(msg[6+2*section:])
		for range count {
			nameEnd, _, err := skipName(msg, off)
			if err != nil || nameEnd+rrFixed > len(msg) {
				return errFormat
			}
			data := nameEnd + rrFixed
			end := data + int(binary.BigEndian.Uint16(msg[nameEnd+8:]))
			if end > len(msg) {
				return errFormat
			}
			if binary.BigEndian.Uint16(msg[nameEnd:]) == dns.TypeOPT {
				additional := section == 2
				root := nameEnd == off+1
				if !additional || !root || q.edns != nil || !optionsFit(msg[data:end]) {
					q.edns = nil
					return errFormat
				}
				q.edns = &edns{
					size:    binary.BigEndian.Uint16(msg[nameEnd+2:]),
					version: msg[nameEnd+5],
					do:      msg[nameEnd+6]&0x80 != 0,
				}
			}
			off = end
		}
	}
	return nil
}

// optionsFit tells whether the data of an OPT record is a sequence of whole options.
func optionsFit(data []byte) bool {
	for len(data) > 0 {
		if len(data) < 4 {
			return false
		}
		size := 4 + int(binary.BigEndian.Uint16(data[2:]))
		if size > len(data) {
			return false
		}
		data = data[size:]
	}
	return true
}

// skipName returns the offset behind the name at off, and whether the name is written out in full,
// without a compression pointer. A pointer is stepped over, never followed.
func skipName(msg []byte, off int) (end int, plain bool, err error) {
	start := off
	for off < len(msg) {
		c := int(msg[off])
		switch {
		case c == 0:
			if off+1-start > maxWireName {
				return 0, false, errFormat
			}
			return off + 1, true, nil
		case c&0xc0 == 0xc0:
			if off+2 > len(msg) || off-start >= maxWireName {
				return 0, false, errFormat
			}
			return off + 2, false, nil
		case c > maxLabel:
			return 0, false, errFormat
		}
		off += 1 + c
	}
	return 0, false, errFormat
}

// fold returns a wire name in lower case. Octets that say the length of a label are at most 63, so
// none of them is a letter.
func fold(name []byte) []byte {
	folded := make([]byte, len(name))
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		folded[i] = c
	}
	return folded
}
