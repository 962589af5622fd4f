package main

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/miekg/dns"
)

// rcode wants one of these codes. A reply that is no complaint about the message repeats the
// question, octet by octet.
func rcode(want ...int) judge {
	return func(r reply) error {
		for _, c := range want {
			if r.Rcode != c {
				continue
			}
			if c == dns.RcodeFormatError || c == dns.RcodeNotImplemented {
				return nil
			}
			return question(r)
		}
		return fmt.Errorf("%s, want %s", codes([]int{r.Rcode}), codes(want))
	}
}

func question(r reply) error {
	end := 12
	for end < len(r.query) && r.query[end] != 0 {
		end += 1 + int(r.query[end])
	}
	end += 5
	if len(r.Question) != 1 || end > len(r.query) || len(r.raw) < end || !bytes.Equal(r.raw[12:end], r.query[12:end]) {
		return errors.New("the question is not as asked")
	}
	return nil
}

// address wants an authoritative answer of one A.
func address(want string) judge {
	return func(r reply) error {
		if err := rcode(dns.RcodeSuccess)(r); err != nil {
			return err
		}
		if !r.Authoritative || len(r.Answer) != 1 {
			return fmt.Errorf("AA %v, %d answers", r.Authoritative, len(r.Answer))
		}
		a, ok := r.Answer[0].(*dns.A)
		if !ok || a.A.String() != want || a.Hdr.Ttl > 15 {
			return fmt.Errorf("answer %s, want %s", r.Answer[0], want)
		}
		return nil
	}
}

// negative wants no answer and exactly one SOA of the zone that lets a cache keep it for at most 15 s.
func negative(code int) judge {
	return func(r reply) error {
		if err := rcode(code)(r); err != nil {
			return err
		}
		if !r.Authoritative || len(r.Answer) != 0 || len(r.Ns) != 1 {
			return fmt.Errorf("AA %v, %d answers, %d authority records", r.Authoritative, len(r.Answer), len(r.Ns))
		}
		soa, ok := r.Ns[0].(*dns.SOA)
		if !ok || dns.CanonicalName(soa.Hdr.Name) != zoneName || soa.Hdr.Ttl > 15 || soa.Minttl > 15 {
			return fmt.Errorf("authority %s", r.Ns[0])
		}
		return nil
	}
}

var nodata, nxdomain = negative(dns.RcodeSuccess), negative(dns.RcodeNameError)

// refused wants REFUSED and nothing else, not even AA.
func refused(r reply) error {
	if err := rcode(dns.RcodeRefused)(r); err != nil {
		return err
	}
	if r.Authoritative || len(r.Answer)+len(r.Ns) > 0 {
		return fmt.Errorf("AA %v, %d answers, %d authority records", r.Authoritative, len(r.Answer), len(r.Ns))
	}
	return nil
}

// empty wants no record but OPT.
func empty(r reply) error {
	if n := len(r.Answer) + len(r.Ns); n > 0 {
		return fmt.Errorf("%d records", n)
	}
	return nil
}

// hasOPT wants exactly one OPT, of version 0 and a size of at least 512.
func hasOPT(r reply) error {
	n := 0
	for _, rr := range r.Extra {
		if _, ok := rr.(*dns.OPT); ok {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("%d OPT records, want one", n)
	}
	if o := r.IsEdns0(); o.Version() != 0 || o.UDPSize() < 512 {
		return fmt.Errorf("OPT of version %d, size %d", o.Version(), o.UDPSize())
	}
	return nil
}

func noOPT(r reply) error {
	if r.IsEdns0() != nil {
		return errors.New("an OPT record that was not asked for")
	}
	return nil
}

// doIs wants the DO bit of the OPT record.
func doIs(want bool) judge {
	return func(r reply) error {
		if o := r.IsEdns0(); o == nil || o.Do() != want {
			return fmt.Errorf("DO is not %v", want)
		}
		return nil
	}
}

// noOption wants no option of this code.
func noOption(code uint16) judge {
	return func(r reply) error {
		if o := r.IsEdns0(); o != nil {
			for _, option := range o.Option {
				if option.Option() == code {
					return fmt.Errorf("option %d is sent back", code)
				}
			}
		}
		return nil
	}
}

// flag wants a header flag.
func flag(name string, get func(dns.MsgHdr) bool, want bool) judge {
	return func(r reply) error {
		if get(r.MsgHdr) != want {
			return fmt.Errorf("%s is not %v", name, want)
		}
		return nil
	}
}

// shorter wants at most so many octets.
func shorter(limit int) judge {
	return func(r reply) error {
		if len(r.raw) > limit {
			return fmt.Errorf("%d octets, at most %d", len(r.raw), limit)
		}
		return nil
	}
}

// records wants answers, all of one type.
func records(qtype uint16) judge {
	return func(r reply) error {
		if err := rcode(dns.RcodeSuccess)(r); err != nil {
			return err
		}
		if !r.Authoritative || len(r.Answer) == 0 {
			return fmt.Errorf("AA %v, %d answers", r.Authoritative, len(r.Answer))
		}
		for _, rr := range r.Answer {
			if rr.Header().Rrtype != qtype {
				return fmt.Errorf("answer %s", rr)
			}
		}
		return nil
	}
}
