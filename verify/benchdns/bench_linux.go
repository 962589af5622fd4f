package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// singles is how many single queries one round times.
const singles = 2000

// contender is a server with what was measured of it. A server can be in the run twice.
type contender struct {
	*server
	label   string
	changes bool // its zone changes a thousand times a second
	rates   []float64
	costs   []float64 // microseconds of its core per query
	p50     []float64 // microseconds
	zones   []float64 // other zones a second, as one in some dozen replies shows them
	lost    int
}

func (b bench) run(ctx context.Context, out io.Writer) error {
	folder, err := os.MkdirTemp("", "benchdns")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	all, err := b.startAll(ctx, folder, out)
	defer func() {
		for _, c := range all {
			if !c.changes {
				c.stop()
			}
		}
	}()
	if err != nil {
		return err
	}
	if err := pin(b.clientCPU); err != nil {
		return err
	}
	queries, err := mix()
	if err != nil {
		return err
	}
	for round := range b.rounds {
		for i := range all { // another one is the first each time
			if err := b.measure(ctx, all[(i+round)%len(all)], queries); err != nil {
				return err
			}
		}
	}
	if all[0].name == "minhost" {
		if err := b.flooded(ctx, all[0], out); err != nil {
			return err
		}
	}
	return judge(out, all)
}

func (b bench) startAll(ctx context.Context, folder string, out io.Writer) ([]*contender, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var all []*contender
	for _, p := range peers(self) {
		if b.only[0] != "" && !slices.Contains(b.only, p.name) {
			continue
		}
		if p.program() == "" {
			fmt.Fprintf(out, "%s: no %s here, left out\n", p.name, p.programs[0])
			continue
		}
		dir := filepath.Join(folder, p.name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return all, err
		}
		s, err := start(ctx, p, dir, b)
		if err != nil {
			return all, err
		}
		all = append(all, &contender{server: s, label: p.name})
		if p.name == "minhost" {
			all = append(all, &contender{server: s, label: p.name + ", zone changing", changes: true})
		}
	}
	return all, nil
}

func (b bench) measure(ctx context.Context, c *contender, queries [][]byte) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	cl, err := dial(c.port, queries)
	if err != nil {
		return err
	}
	defer cl.close()
	var wg sync.WaitGroup
	changing, stop := context.WithCancel(ctx)
	defer wg.Wait()
	defer stop()
	if c.changes {
		wg.Go(func() { churn(changing, filepath.Join(c.folder, "zone")) })
	}
	before, err := c.cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	replies, lost, err := cl.flood(b.length, b.window)
	took := time.Since(began)
	after, err2 := c.cpu()
	if err := errors.Join(err, err2); err != nil || replies == 0 {
		return fmt.Errorf("%s: %d replies: %w", c.label, replies, err)
	}
	c.rates = append(c.rates, float64(replies)/took.Seconds())
	c.costs = append(c.costs, float64((after-before).Nanoseconds())/1000/float64(replies))
	c.zones = append(c.zones, float64(cl.zones)/took.Seconds())
	c.lost += lost
	times, err := cl.single(singles)
	if err == nil {
		c.p50 = append(c.p50, float64(times[len(times)/2].Nanoseconds())/1000)
	}
	return err
}

// flooded times single queries of the host while a box asks for names outside the zone as fast as it
// can. The box has the client's core too, so some of the time is waiting for that.
func (b bench) flooded(ctx context.Context, c *contender, out io.Writer) error {
	outside, err := new(dns.Msg).SetQuestion("example.com.", dns.TypeA).Pack()
	if err != nil {
		return err
	}
	box, err := dial(c.port+boxPorts, [][]byte{outside})
	if err != nil {
		return err
	}
	defer box.close()
	queries, err := mix()
	if err != nil {
		return err
	}
	host, err := dial(c.port, queries)
	if err != nil {
		return err
	}
	defer host.close()
	done := make(chan int, 1)
	go func() {
		replies, _, _ := box.flood(b.length, 2*b.window)
		done <- replies
	}()
	var times []time.Duration
	for end := time.Now().Add(b.length * 9 / 10); time.Now().Before(end) && ctx.Err() == nil; {
		some, err := host.single(100)
		if err != nil {
			return err
		}
		times = append(times, some...)
	}
	slices.Sort(times)
	fmt.Fprintf(out, "while a box floods (%.0f replies/s): a query of the host takes %v at the median, %v at p99\n",
		float64(<-done)/b.length.Seconds(), times[len(times)/2], times[len(times)*99/100])
	return nil
}

// churn replaces the zone file a thousand times a second, as the helper does.
func churn(ctx context.Context, path string) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for generation := uint64(2); ; generation++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		fresh := path + ".new"
		if os.WriteFile(fresh, ourZone(generation), 0o644) == nil {
			_ = os.Rename(fresh, path)
		}
	}
}
