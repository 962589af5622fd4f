package resolverd

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/miekg/dns"
)

// wire joins the parts of a message.
func wire(parts ...string) []byte {
	var b []byte
	for _, part := range parts {
		b = append(b, part...)
	}
	return b
}

// head is a header: id 0xbeef, then two octets of flags and the four counts.
func head(flags1, flags2 byte, qd, an, ns, ar uint16) string {
	b := []byte{0xbe, 0xef, flags1, flags2}
	for _, n := range []uint16{qd, an, ns, ar} {
		b = binary.BigEndian.AppendUint16(b, n)
	}
	return string(b)
}

const (
	askWeb   = "\x03web\x03min\x08internal\x00\x00\x01\x00\x01"
	opt      = "\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00"
	optV1    = "\x00\x00\x29\x04\xd0\x00\x01\x00\x00\x00\x00"
	optOwned = "\x03web\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00"
	optPoint = "\xc0\x0c\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00"
	record   = "\x01x\x00\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04\x7f\x00\x00\x01"
	found    = "NOERROR qr aa\nanswer web.min.internal. 5 IN A 127.0.64.1\n"
	formerr  = "FORMERR qr\n"
)

// optWith is an OPT record with these octets as options.
func optWith(options string) string {
	return "\x00\x00\x29\x04\xd0\x00\x00\x00\x00" + string([]byte{byte(len(options) >> 8), byte(len(options))}) + options
}

func TestOddMessages(t *testing.T) {
	zone := textZone(t, "web 127.0.64.1")
	const one = "\x00\x01" // the count of questions, of records, ...
	label63 := "\x3f" + string(bytes.Repeat([]byte("a"), 63))
	cases := map[string]struct {
		msg    []byte
		want   string // "" is silence
		echoed bool
	}{
		"empty":                     {nil, "", false},
		"one octet":                 {wire("\x00"), "", false},
		"eleven octets":             {wire(head(0, 0, 1, 0, 0, 0)[:11]), "", false},
		"a response":                {wire(head(0x80, 0, 1, 0, 0, 0), askWeb), "", false},
		"a response, broken":        {wire(head(0x84, 3, 1, 9, 9, 9)), "", false},
		"a response, other opcode":  {wire(head(0xa8, 0, 1, 0, 0, 0), askWeb), "", false},
		"header only":               {wire(head(0, 0, 0, 0, 0, 0)), formerr, false},
		"RD stays in an error":      {wire(head(1, 0, 0, 0, 0, 0)), "FORMERR qr rd\n", false},
		"no question, but one said": {wire(head(0, 0, 1, 0, 0, 0)), formerr, false},
		"two questions":             {wire(head(0, 0, 2, 0, 0, 0), askWeb, askWeb), formerr, false},
		"two said, one there":       {wire(head(0, 0, 2, 0, 0, 0), askWeb), formerr, false},
		"65535 questions":           {wire(head(0, 0, 65535, 0, 0, 0), askWeb), formerr, false},
		"name cut":                  {wire(head(0, 0, 1, 0, 0, 0), askWeb[:9]), formerr, false},
		"name without end":          {wire(head(0, 0, 1, 0, 0, 0), askWeb[:17]), formerr, false},
		"type cut":                  {wire(head(0, 0, 1, 0, 0, 0), askWeb[:len(askWeb)-3]), formerr, false},
		"class cut":                 {wire(head(0, 0, 1, 0, 0, 0), askWeb[:len(askWeb)-1]), formerr, false},
		"name points at itself":     {wire(head(0, 0, 1, 0, 0, 0), "\xc0\x0c\x00\x01\x00\x01"), formerr, false},
		"name points ahead":         {wire(head(0, 0, 1, 0, 0, 0), "\xc0\x12\x00\x01\x00\x01\x00"), formerr, false},
		"name points into header":   {wire(head(0, 0, 1, 0, 0, 0), "\x03web\xc0\x04\x00\x01\x00\x01"), formerr, false},
		"name points into a label":  {wire(head(0, 0, 1, 0, 0, 0), "\x01\x00\xc0\x01\x00\x01\x00\x01"), formerr, false},
		"label type 01":             {wire(head(0, 0, 1, 0, 0, 0), "\x41a\x00\x00\x01\x00\x01"), formerr, false},
		"label type 10":             {wire(head(0, 0, 1, 0, 0, 0), "\x81a\x00\x00\x01\x00\x01"), formerr, false},
		"name of 257 octets":        {wire(head(0, 0, 1, 0, 0, 0), label63, label63, label63, label63, "\x00\x00\x01\x00\x01"), formerr, false},
		"name of 256 octets":        {wire(head(0, 0, 1, 0, 0, 0), label63, label63, label63, "\x3e", label63[2:], "\x00\x00\x01\x00\x01"), formerr, false},
		"name of 255 octets":        {wire(head(0, 0, 1, 0, 0, 0), label63, label63, label63, "\x3d", label63[3:], "\x00\x00\x01\x00\x01"), "REFUSED qr\n", true},
		"octets behind the end":     {wire(head(0, 0, 1, 0, 0, 0), askWeb, "garbage"), found, true},
		"TC, AA, RA, Z, AD, rcode":  {wire(head(0x06, 0xef, 1, 0, 0, 0), askWeb), found, true},

		"STATUS":            {wire(head(2<<3, 0, 1, 0, 0, 0), askWeb), "NOTIMP qr\n", true},
		"NOTIFY":            {wire(head(4<<3, 0, 1, 0, 0, 0), askWeb), "NOTIMP qr\n", true},
		"UPDATE":            {wire(head(5<<3, 0, 1, 0, 1, 1), askWeb, record, opt), "NOTIMP qr\nedns 1232\n", true},
		"opcode 15":         {wire(head(15<<3|1, 0, 1, 0, 0, 0), askWeb), "NOTIMP qr rd\n", true},
		"opcode 6, no body": {wire(head(6<<3, 0, 0, 0, 0, 0)), "NOTIMP qr\n", false},
		"opcode 5, garbage": {wire(head(5<<3, 0, 1, 7, 7, 7), "\xff\xff\xff"), "NOTIMP qr\n", false},

		"a record in each section": {wire(head(0, 0, 1, 1, 1, 1), askWeb, record, record, record), found, true},
		"a record is missing":      {wire(head(0, 0, 1, 0, 0, 1), askWeb), formerr, true},
		"65535 records said":       {wire(head(0, 0, 1, 65535, 65535, 65535), askWeb, record), formerr, true},
		"record data cut":          {wire(head(0, 0, 1, 1, 0, 0), askWeb, record[:len(record)-1]), formerr, true},
		"record header cut":        {wire(head(0, 0, 1, 1, 0, 0), askWeb, record[:9]), formerr, true},
		"record name never ends":   {wire(head(0, 0, 1, 1, 0, 0), askWeb, "\x01x\x01x"), formerr, true},
		"record name of 255":       {wire(head(0, 0, 1, 1, 0, 0), askWeb, label63, label63, label63, "\x3d", label63[3:], record[2:]), found, true},
		"record name of 256":       {wire(head(0, 0, 1, 1, 0, 0), askWeb, label63, label63, label63, "\x3e", label63[2:], record[2:]), formerr, true},
		"pointer loop in a record": {wire(head(0, 0, 1, 1, 0, 0), askWeb, "\xc0\x22", record[3:]), found, true},
		"record pointer cut":       {wire(head(0, 0, 1, 1, 0, 0), askWeb, "\xc0"), formerr, true},

		"OPT":                     {wire(head(0, 0, 1, 0, 0, 1), askWeb, opt), "NOERROR qr aa\nedns 1232\n" + found[len("NOERROR qr aa\n"):], true},
		"OPT behind a record":     {wire(head(0, 0, 1, 0, 0, 2), askWeb, record, opt), "NOERROR qr aa\nedns 1232\n" + found[len("NOERROR qr aa\n"):], true},
		"two OPTs":                {wire(head(0, 0, 1, 0, 0, 2), askWeb, opt, opt), formerr, true},
		"two OPTs, other version": {wire(head(0, 0, 1, 0, 0, 2), askWeb, opt, optV1), formerr, true},
		"OPT owner not root":      {wire(head(0, 0, 1, 0, 0, 1), askWeb, optOwned), formerr, true},
		"OPT owner a pointer":     {wire(head(0, 0, 1, 0, 0, 1), askWeb, optPoint), formerr, true},
		"OPT as an answer":        {wire(head(0, 0, 1, 1, 0, 0), askWeb, opt), formerr, true},
		"OPT as authority":        {wire(head(0, 0, 1, 0, 1, 0), askWeb, opt), formerr, true},
		"OPT cut":                 {wire(head(0, 0, 1, 0, 0, 1), askWeb, opt[:10]), formerr, true},
		"BADVERS before REFUSED":  {wire(head(0, 0, 1, 0, 0, 1), askWeb[:len(askWeb)-1], "\x03", optV1), "BADVERS qr\nedns 1232\n", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, view := range []View{HostView, BoxView} {
				agree(t, c.msg, zone, view)
				if view == BoxView && c.want == "REFUSED qr\n" {
					continue
				}
				out := Answer(c.msg, zone, view, UDPLimit)
				if c.want == "" {
					if out != nil {
						t.Fatalf("answered with %x", out)
					}
					continue
				}
				if got := describe(unpack(t, out)); got != c.want {
					t.Fatalf("got:\n%swant:\n%s", got, c.want)
				}
				if c.echoed != (string(out[4:6]) == one) || c.echoed && !bytes.HasPrefix(c.msg[headerSize:], echo(t, out)) {
					t.Errorf("question not as asked: %x", out)
				}
			}
		})
	}
}

// echo is the question section of a reply.
func echo(t *testing.T, out []byte) []byte {
	return out[headerSize : headerSize+questionSize(t, out)]
}

// TestOptionsAreIgnored: whatever options a query carries, well-made in themselves or not, it gets
// the same reply as without them. Only options that overrun the record make it unreadable.
func TestOptionsAreIgnored(t *testing.T) {
	zone := textZone(t, "web 127.0.64.1")
	plain := Answer(wire(head(0, 0, 1, 0, 0, 1), askWeb, opt), zone, HostView, UDPLimit)
	for name, options := range map[string]string{
		"NSID":                     "\x00\x03\x00\x00",
		"client cookie":            "\x00\x0a\x00\x0812345678",
		"cookie of bad length":     "\x00\x0a\x00\x03123",
		"subnet":                   "\x00\x08\x00\x07\x00\x01\x18\x00\x7f\x00\x00",
		"subnet of unknown family": "\x00\x08\x00\x04\x00\xff\x00\x00",
		"padding":                  "\x00\x0c\x00\x04\x00\x00\x00\x00",
		"keepalive":                "\x00\x0b\x00\x00",
		"unknown":                  "\xff\x00\x00\x02ab",
		"two":                      "\x00\x03\x00\x00\x00\x0a\x00\x0812345678",
	} {
		out := Answer(wire(head(0, 0, 1, 0, 0, 1), askWeb, optWith(options)), zone, HostView, UDPLimit)
		if !bytes.Equal(out, plain) {
			t.Errorf("%s: %x", name, out)
		}
	}
	for name, options := range map[string]string{
		"no length":         "\x00\x03",
		"length cut":        "\x00\x03\x00",
		"overrun":           "\x00\x03\x00\x01",
		"second overruns":   "\x00\x03\x00\x00\x00\x0a\x00\x08123",
		"length of 65535":   "\x00\x0a\xff\xff",
		"one octet behind":  "\x00\x03\x00\x00\x00",
		"three more behind": "\x00\x03\x00\x00\x00\x00\x00",
	} {
		out := Answer(wire(head(0, 0, 1, 0, 0, 1), askWeb, optWith(options)), zone, HostView, UDPLimit)
		if got := describe(unpack(t, out)); got != formerr {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestSoleSOA: every negative of either view has one SOA, first in the authority section.
func TestSoleSOA(t *testing.T) {
	zone, cases := readCases(t, "testdata/answers.txt")
	negatives := 0
	for _, c := range cases {
		msg, view := question(t, c.ask)
		m := unpack(t, Answer(msg, zone, view, UDPLimit))
		if len(m.Answer) > 0 || m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError {
			continue
		}
		negatives++
		if err := checkSOA(m); err != nil {
			t.Errorf("> %s: %v", c.ask, err)
		}
	}
	if negatives < 30 {
		t.Errorf("%d negatives seen", negatives)
	}
}
