package report

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// What one lease, and all of them, may have told: so many a second and so many at once. A box that
// floods takes none of the helper's time; of what is not told only the number is known. The rates
// of a lease are those of the table's log of refused packets.
const (
	leaseRate, leaseBurst = 20, 40
	totalRate, totalBurst = 1000, 1000
	// Lookups are for people to read.
	lookupRate, lookupBurst = 200, 400
	maxLeases               = 1024 // remembered; after that all begin anew
)

// Sender sends reports to the helper's socket. It never waits: what does not go at once is dropped.
// The socket may come, go and be replaced. A nil Sender sends nothing. It may be used by many
// goroutines.
type Sender struct {
	path    string
	now     func() time.Time
	dropped atomic.Uint64

	mu    sync.Mutex
	conn  *net.UnixConn // nil when not connected
	total bucket
	lease map[uint16]bucket

	lookups bucket
	missed  uint64 // lookups that were not told
}

// NewSender makes a sender to the socket at path. It need not exist yet.
func NewSender(path string) *Sender {
	return &Sender{path: path, now: time.Now, total: full(totalBurst), lookups: full(lookupBurst), lease: map[uint16]bucket{}}
}

// bucket is a token bucket.
type bucket struct {
	tokens float64
	at     time.Time
}

func full(burst float64) bucket { return bucket{tokens: burst} }

// take tells whether there is a token, and takes it.
func (b *bucket) take(now time.Time, rate, burst float64) bool {
	if !b.at.IsZero() {
		b.tokens = min(burst, b.tokens+now.Sub(b.at).Seconds()*rate)
	}
	b.at = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// Refused tells of a refused name. make is called only when the datagram will be sent.
func (s *Sender) Refused(lease uint16, make func() Refused) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admit(lease) && s.send(make().Encode()) {
		return
	}
	s.dropped.Add(1)
}

// Lookup tells of a lookup, and of how many were not told before it. make is called only when the
// datagram will be sent.
func (s *Sender) Lookup(make func() Lookup) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lookups.take(s.now(), lookupRate, lookupBurst) {
		l := make()
		l.Missed = s.missed
		if s.send(l.Encode()) {
			s.missed = 0
			return
		}
	}
	s.missed++
}

// Counters tells the counters, and whether they went.
func (s *Sender) Counters(c Counters) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.send(c.Encode())
}

// Dropped is how many refused names were not told.
func (s *Sender) Dropped() uint64 {
	if s == nil {
		return 0
	}
	return s.dropped.Load()
}

// Close gives up the connection. A later report makes another.
func (s *Sender) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disconnect()
}

func (s *Sender) disconnect() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

func (s *Sender) admit(lease uint16) bool {
	now := s.now()
	if len(s.lease) >= maxLeases {
		clear(s.lease)
	}
	b, ok := s.lease[lease]
	if !ok {
		b = full(leaseBurst)
	}
	allowed := b.take(now, leaseRate, leaseBurst)
	s.lease[lease] = b
	return allowed && s.total.take(now, totalRate, totalBurst)
}

// send tries twice: the socket at the path may be another than the one that we are connected to.
func (s *Sender) send(datagram []byte) bool {
	for range 2 {
		if s.conn == nil {
			conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: s.path, Net: "unixgram"})
			if err != nil {
				return false
			}
			s.conn = conn
		}
		err := write(s.conn, datagram)
		if err == nil {
			return true
		}
		if err == syscall.EAGAIN || err == syscall.ENOBUFS { // the helper does not keep up
			return false
		}
		s.disconnect()
	}
	return false
}

// write sends without waiting for room, which Write of net would.
func write(conn *net.UnixConn, datagram []byte) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = raw.Write(func(fd uintptr) bool {
		_, sent = syscall.Write(int(fd), datagram)
		return true
	})
	if err != nil {
		return err
	}
	return sent
}
