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
	changer *changer // of our own server's zone
	load    load
	rates   []float64
	costs   []float64 // microseconds of its core per query
	p50     []float64 // microseconds
	zones   []float64 // other zones a second, as replies show them
	late    []time.Duration
	lost    int
}

// load is what a server is put under.
type load struct {
	window int           // queries that are open at once
	names  int           // of a zone that changes; 0 for one that does not
	every  time.Duration // it changes so often
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
			if c.load.names == 0 {
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
	var missed error
	if all[0].changer != nil {
		missed = errors.Join(b.changed(ctx, all[0], queries, out), b.flooded(ctx, all[0], queries, out))
	}
	return errors.Join(missed, judge(out, all))
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
		c := &contender{server: s, label: p.name, load: load{window: b.window}}
		all = append(all, c)
		if p.name == ours {
			c.changer = &changer{path: filepath.Join(dir, "zone"), serial: 1}
			all = append(all, &contender{server: s, label: p.name + ", zone changing", changer: c.changer,
				load: load{window: b.window, names: nameCount, every: changesEvery}})
		}
	}
	return all, nil
}

// flood puts a server under a load for the length of a measurement. It returns the replies and how many
// were lost.
func (b bench) flood(ctx context.Context, c *contender, queries [][]byte, l load) (replies, lost int, err error) {
	cl, err := dial(c.port, queries)
	if err != nil {
		return 0, 0, err
	}
	defer cl.close()
	var wg sync.WaitGroup
	var failed error
	ctx, stop := context.WithCancel(ctx)
	if l.names > 0 {
		cl.changed = c.changer.shown
		wg.Go(func() { failed = c.changer.run(ctx, l.names, b.clientCPU, l.every) })
	}
	replies, lost, err = cl.flood(b.length, l.window)
	stop()
	wg.Wait()
	return replies, lost, errors.Join(err, failed)
}

func (b bench) measure(ctx context.Context, c *contender, queries [][]byte) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	before, err := c.cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	replies, lost, err := b.flood(ctx, c, queries, c.load)
	took := time.Since(began).Seconds()
	after, err2 := c.cpu()
	if err := errors.Join(err, err2); err != nil || replies == 0 {
		return fmt.Errorf("%s: %d replies: %w", c.label, replies, err)
	}
	c.rates = append(c.rates, float64(replies)/took)
	c.costs = append(c.costs, float64((after-before).Nanoseconds())/1000/float64(replies))
	c.lost += lost
	if c.load.names > 0 {
		zones, late := c.changer.take()
		c.zones = append(c.zones, float64(zones)/took)
		c.late = append(c.late, late...)
	}
	return b.single(c, queries)
}

// single times single queries.
func (b bench) single(c *contender, queries [][]byte) error {
	cl, err := dial(c.port, queries)
	if err != nil {
		return err
	}
	defer cl.close()
	times, err := cl.single(singles)
	if err == nil {
		c.p50 = append(c.p50, float64(times[len(times)/2].Nanoseconds())/1000)
	}
	return err
}

// flooded times single queries of the host while a box asks for names outside the zone as fast as it
// can. The box has the client's core too, so some of the time is waiting for that.
func (b bench) flooded(ctx context.Context, c *contender, queries [][]byte, out io.Writer) error {
	outside, err := new(dns.Msg).SetQuestion("example.com.", dns.TypeA).Pack()
	if err != nil {
		return err
	}
	box, err := dial(c.port+boxPorts, [][]byte{outside})
	if err != nil {
		return err
	}
	defer box.close()
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
