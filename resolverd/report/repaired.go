package report

import (
	"fmt"
	"strings"
)

// repairedMagic begins the one message that is not the answerer's: root's keeper of the names link sends it.
const repairedMagic = "minhost-repaired 1 "

// Repaired is something of the host that was not right any more and was put right.
type Repaired struct{ What string }

// Encode renders the datagram; what is not printable ASCII, or too long, is not carried.
func (r Repaired) Encode() []byte {
	what := strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '?'
		}
		return c
	}, r.What)
	return []byte(repairedMagic + what[:min(len(what), MaxName)])
}

// DecodeRepaired reads what Encode wrote and nothing else.
func DecodeRepaired(b []byte) (Repaired, error) {
	what, ok := strings.CutPrefix(string(b), repairedMagic)
	r := Repaired{what}
	if !ok || what == "" || string(r.Encode()) != string(b) {
		return Repaired{}, fmt.Errorf("report of %d octets: not a repair", len(b))
	}
	return r, nil
}

// Repaired tells of a repair. Without a helper nobody hears of it.
func (s *Sender) Repaired(r Repaired) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.send(r.Encode()) {
		s.dropped.Add(1)
	}
}
