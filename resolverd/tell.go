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
	var lease uint16
	if mark&s.leaseMark != 0 {
		lease = uint16(mark)
	}
	s.report.Refused(lease, func() report.Refused {
		end, _, err := skipName(msg, headerSize)
		if err != nil || end+2 > len(msg) {
			return report.Refused{} // not reached: the message was answered
		}
		return report.Refused{Lease: lease, Network: network, From: from,
			Type: binary.BigEndian.Uint16(msg[end:]), Name: report.Presentation(msg[headerSize:end])}
	})
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
