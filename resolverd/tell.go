package resolverd

import (
	"context"
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/gominimal/minhost/resolverd/report"
)

// DefaultLeaseMark is the bit in a packet's mark which says that the low 16 are the number of the
// lease that sent it. The kernel's table sets it on what a box sends to this host, and takes it off
// what anybody else sends.
const DefaultLeaseMark = 0x20000000

// countersEvery is how often the helper hears the counters.
const countersEvery = 10 * time.Second

// tellRefused tells the helper that a confined box asked for a name outside the zone.
func (s *Server) tellRefused(msg []byte, mark uint32, network string, from netip.AddrPort) {
	lease := s.leaseOf(mark)
	s.report.Refused(lease, func() report.Refused {
		name, qtype, _ := asked(msg) // there is one: the message was answered
		return report.Refused{Lease: lease, Network: network, From: from, Type: qtype, Name: report.Presentation(name)}
	})
}

// tellLookup tells the helper of any lookup, if its question can be read.
func (s *Server) tellLookup(kind report.Kind, view View, msg []byte, mark uint32, network string, from netip.AddrPort) {
	name, qtype, ok := asked(msg)
	if !ok || kind == report.Silent {
		return
	}
	s.report.Lookup(func() report.Lookup {
		return report.Lookup{View: view.String(), Lease: s.leaseOf(mark), Network: network, From: from,
			Type: qtype, Answer: kind, Name: report.Presentation(name)}
	})
}

// leaseOf is the number of the lease in a packet's mark, 0 for none.
func (s *Server) leaseOf(mark uint32) uint16 {
	if mark&s.leaseMark == 0 {
		return 0
	}
	return uint16(mark)
}

// asked reads name and type of a message's first question.
func asked(msg []byte) (name []byte, qtype uint16, ok bool) {
	end, plain, err := skipName(msg, headerSize)
	if err != nil || !plain || end+2 > len(msg) {
		return nil, 0, false
	}
	return msg[headerSize:end], binary.BigEndian.Uint16(msg[end:]), true
}

// Counters are the replies of this server so far.
func (s *Server) Counters() report.Counters {
	c := s.counts.snapshot()
	c[report.Untold] = s.report.Dropped()
	return c
}

// tellCounters tells the helper the counters at once and from time to time, changed or not: the
// helper may be another than the one that heard the last ones.
func (s *Server) tellCounters(ctx context.Context, every time.Duration) {
	if s.report == nil {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		s.report.Counters(s.Counters())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
