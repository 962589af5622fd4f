package resolverd

import (
	"sync/atomic"

	"github.com/miekg/dns"

	"github.com/gominimal/minhost/resolverd/report"
)

// counts are the replies of a server so far. Each serving goroutine adds to them.
type counts [report.Kinds]atomic.Uint64

// snapshot is one moment of each counter, not one moment of all.
func (c *counts) snapshot() report.Counters {
	var s report.Counters
	for k := range c {
		s[k] = c[k].Load()
	}
	return s
}

// add adds what one goroutine counted by itself, and clears that.
func (c *counts) add(some *report.Counters) {
	for k, n := range some {
		if n != 0 {
			c[k].Add(n)
			some[k] = 0
		}
	}
}

// kindOf tells what kind of reply these octets are, whichever path made them.
func kindOf(reply []byte) report.Kind {
	if len(reply) < headerSize {
		return report.Silent
	}
	answers, authority := reply[7], reply[9] // there is at most one record of each
	switch rcode := reply[3] & 0x0f; {
	case reply[2]&0x02 != 0:
		return report.Truncated
	case rcode == dns.RcodeNameError && rootSOA(reply):
		return report.Outside
	case rcode == dns.RcodeNameError:
		return report.NoName
	case rcode == dns.RcodeRefused:
		return report.Declined
	case rcode == dns.RcodeNotImplemented:
		return report.Opcode
	case rcode != dns.RcodeSuccess, answers+authority == 0: // the latter is BADVERS
		return report.Malformed
	case answers != 0:
		return report.Address
	}
	return report.NoData
}

// rootSOA tells whether the authority of a negative reply is that of the root: the name is not of
// the zone. An SOA of the zone points into the question.
func rootSOA(reply []byte) bool {
	end, _, err := skipName(reply, headerSize)
	return err == nil && end+4 < len(reply) && reply[end+4] == 0
}
