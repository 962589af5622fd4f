package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/gominimal/minhost/resolverd/zonefile"
)

const (
	// changesEvery is how often the zone changes while our answerer is measured with that.
	changesEvery = time.Millisecond
	// lateLimit is how long after the helper's write a change may be answered, at the median.
	lateLimit = 5 * time.Millisecond
)

// changer replaces the zone file of our answerer as the helper does, and learns from the serials of
// replies when each change was answered.
type changer struct {
	path string

	mu      sync.Mutex
	serial  uint32 // of the last change; never goes back, so that a late reply shows no later change
	waiting []written
	late    []time.Duration // from the write of a change to the first reply that shows it or a later one
	zones   int             // that replies showed; of changes that came together it is the last
}

// written is a change that no reply has shown yet.
type written struct {
	serial uint32
	at     time.Time
}

// run changes a zone of so many names until ctx ends, on one core.
func (c *changer) run(ctx context.Context, names, cpu int, every time.Duration) error {
	if err := pin(cpu); err != nil {
		return err
	}
	zone := ourZone(names)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := c.change(zone); err != nil {
			return err
		}
	}
}

// change writes a zone with one name more or less than before.
func (c *changer) change(zone zonefile.File) error {
	zone.Generation = uint64(c.serial) + 1
	if _, more := zone.Names["odd"]; more {
		delete(zone.Names, "odd")
	} else {
		zone.Names["odd"] = netip.AddrFrom4([4]byte{127, 0, 64, 1})
	}
	fresh := c.path + ".new"
	if err := os.WriteFile(fresh, zonefile.Encode(zone), 0o644); err != nil {
		return err
	}
	c.mu.Lock()
	c.serial++
	c.waiting = append(c.waiting, written{c.serial, time.Now()})
	c.mu.Unlock()
	return os.Rename(fresh, c.path)
}

// shown takes the serial of a reply that is another than that of the reply before.
func (c *changer) shown(serial uint32) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.zones++
	n := 0
	for n < len(c.waiting) && c.waiting[n].serial <= serial {
		c.late = append(c.late, now.Sub(c.waiting[n].at))
		n++
	}
	c.waiting = slices.Delete(c.waiting, 0, n)
}

// take returns what was learnt since the last time.
func (c *changer) take() (zones int, late []time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	zones, late = c.zones, c.late
	c.zones, c.late, c.waiting = 0, nil, nil
	return zones, late
}

// changed measures how long after its write a single change is answered, with zones of two sizes. Queries are
// asked one after the other meanwhile.
func (b bench) changed(ctx context.Context, c *contender, queries [][]byte, out io.Writer) error {
	for _, names := range []int{254, 10000} {
		if _, _, err := b.flood(ctx, c, queries, load{window: 1, names: names, every: 20 * time.Millisecond}); err != nil {
			return err
		}
		_, late := c.changer.take()
		if len(late) == 0 {
			return fmt.Errorf("zone of %d names: no change was answered", names)
		}
		slices.Sort(late)
		p50, p99 := late[len(late)/2], late[len(late)*99/100]
		fmt.Fprintf(out, "a change of a zone of %d names is answered %v after its write at the median, %v at p99 (of %d)\n", names, p50, p99, len(late))
		if p50 > lateLimit {
			return fmt.Errorf("a change of a zone of %d names: answered after %v at the median, at most %v", names, p50, lateLimit)
		}
	}
	return nil
}
