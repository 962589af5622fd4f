package resolverd

import (
	"encoding/binary"

	"github.com/miekg/dns"
)

// fastReply is room for the longest reply of fast: header, question of 259 octets, SOA with both
// names as pointers, OPT. It fits in the 512 octets that every asker takes, so fast never cuts.
const (
	optSize    = 1 + rrFixed
	soaNumbers = 5 * 4
	fastReply  = headerSize + maxWireName + 4 + 2 + rrFixed + 2 + 1 + soaNumbers + optSize
)

// The longest reply fits in what even an asker without EDNS takes.
const _ uint = minUDPSize - fastReply

// fast writes the reply to an ordinary query into out and returns its length, or 0 for a query that
// Answer must answer. It gives the octets that Answer gives, which a test holds it to; what it need
// not know, it does not: errors, the apex, discovery, transfers, ANY, octets behind the message.
//
// Nothing is prepared for a name. All that differs between two replies with the same outcome is
// the question, an address, and where in the question the zone begins, so a change of the zone
// costs no packing of what nobody asks for.
func fast(out *[minUDPSize]byte, msg []byte, z *Zone, v View) int {
	var folded [maxWireName]byte
	n, zone, ok := readOrdinary(msg, &folded)
	if !ok {
		return 0
	}
	end := headerSize + n + 4
	qtype := binary.BigEndian.Uint16(msg[headerSize+n:])
	edns := msg[11] != 0
	if edns && !plainOPT(msg[end:]) || !edns && len(msg) > end {
		return 0
	}
	copy(out[:end], msg[:end])
	out[2], out[3] = 0x84|msg[2]&0x01, msg[3]&0x10 // QR and AA; RD and CD stay
	clear(out[6:headerSize])
	length := 0
	if string(folded[zone:n]) == originKey {
		if zone == 0 {
			return 0 // the apex
		}
		addr, exists := z.lookup(folded[:zone], v)
		switch {
		case !exists:
			out[3] |= dns.RcodeNameError
			length = putSOA(out, end, headerSize+zone, z)
		case addr.IsValid() && qtype == dns.TypeA:
			length = putA(out, end, addr.As4())
		default:
			length = putSOA(out, end, headerSize+zone, z)
		}
	} else {
		switch k := classify(folded[:n], z, v); k {
		case outside:
			out[2] &^= 0x04
			out[3] |= dns.RcodeRefused
			length = end
		case notHere:
			out[3] |= dns.RcodeNameError
			length = putRootSOA(out, end, z)
		default:
			return 0
		}
	}
	if edns {
		length = putOPT(out, length, msg[end+7]&0x80)
	}
	return length
}

// readOrdinary reads a message of one question of class IN, written out in full, and at most one
// record besides. n is the length of its name, which is put into folded in lower case; zone is
// where the last two labels of it begin.
func readOrdinary(msg []byte, folded *[maxWireName]byte) (n, zone int, ok bool) {
	const one = 1 << 48 // a question, no answer, no authority; the last bit is a record
	if len(msg) < headerSize+5 || msg[2]&0xf8 != 0 || binary.BigEndian.Uint64(msg[4:])&^1 != one {
		return 0, 0, false
	}
	name := msg[headerSize:]
	last := 0
	for name[n] != 0 {
		size := int(name[n])
		next := n + 1 + size
		if size > maxLabel || next >= maxWireName || next >= len(name) {
			return 0, 0, false
		}
		zone, last = last, n
		folded[n] = name[n]
		for i := n + 1; i < next; i++ {
			c := name[i]
			if c-'A' <= 'Z'-'A' {
				c += 'a' - 'A'
			}
			folded[i] = c
		}
		n = next
	}
	folded[n] = 0
	n++
	if len(name) < n+4 || name[n+2] != 0 || name[n+3] != dns.ClassINET {
		return 0, 0, false
	}
	switch binary.BigEndian.Uint16(name[n:]) {
	case dns.TypeAXFR, dns.TypeIXFR, dns.TypeANY:
		return 0, 0, false
	}
	return n, zone, true
}

// plainOPT tells whether b is an OPT record of version 0 and nothing else.
func plainOPT(b []byte) bool {
	return len(b) >= optSize && b[0] == 0 && binary.BigEndian.Uint16(b[1:]) == dns.TypeOPT && b[6] == 0 &&
		int(binary.BigEndian.Uint16(b[9:])) == len(b)-optSize && optionsFit(b[optSize:])
}

// The functions below append one record at offset at and return the offset behind it.

func putA(out *[minUDPSize]byte, at int, addr [4]byte) int {
	out[7] = 1
	b := append(out[:at], 0xc0, headerSize, 0, byte(dns.TypeA), 0, dns.ClassINET, 0, 0, 0, answerTTL, 0, 4)
	return len(append(b, addr[:]...))
}

// putSOA names the zone by pointers to where it begins in the question.
func putSOA(out *[minUDPSize]byte, at, zone int, z *Zone) int {
	out[9] = 1
	high, low := 0xc0|byte(zone>>8), byte(zone)
	b := append(out[:at], high, low, 0, byte(dns.TypeSOA), 0, dns.ClassINET, 0, 0, 0, soaTTL, 0, 2+1+soaNumbers, high, low, 0)
	return len(appendNumbers(b, z))
}

func putRootSOA(out *[minUDPSize]byte, at int, z *Zone) int {
	out[9] = 1
	b := append(out[:at], 0, 0, byte(dns.TypeSOA), 0, dns.ClassINET, 0, 0, 0, soaTTL, 0, 1+1+soaNumbers, 0, 0)
	return len(appendNumbers(b, z))
}

func appendNumbers(b []byte, z *Zone) []byte {
	b = binary.BigEndian.AppendUint32(b, z.soaSerial())
	return append(b, 0, 0, 0, soaRefresh, 0, 0, 0, soaRetry, 0, 0, 0, soaExpire, 0, 0, 0, soaMinimum)
}

func putOPT(out *[minUDPSize]byte, at int, do byte) int {
	out[11] = 1
	return len(append(out[:at], 0, 0, byte(dns.TypeOPT), UDPLimit>>8, UDPLimit&0xff, 0, 0, do, 0, 0, 0))
}
