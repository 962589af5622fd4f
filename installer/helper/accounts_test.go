package helper

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
)

// TestBucket: so many at once, then as fast as it fills.
func TestBucket(t *testing.T) {
	var b bucket
	now := time.Unix(1700000000, 0)
	for i := range 10 {
		if w := b.take(now, 2, 10); w != 0 {
			t.Fatalf("call %d waits %v", i, w)
		}
	}
	for i, want := range []time.Duration{500 * time.Millisecond, time.Second} {
		if w := b.take(now, 2, 10); w != want {
			t.Errorf("call %d waits %v, want %v", 10+i, w, want)
		}
	}
	if b.full(now.Add(5*time.Second), 2) || !b.full(now.Add(6*time.Second), 2) {
		t.Error("12 calls are made good in 6 s at 2 a second")
	}
	now = now.Add(time.Hour) // it does not save up more than it holds
	for range 10 {
		b.take(now, 2, 10)
	}
	if w := b.take(now, 2, 10); w != 500*time.Millisecond {
		t.Errorf("behind an hour: %v", w)
	}
}

// TestPace: who calls too fast waits; another account, and root, do not. The bound is above the wait.
func TestPace(t *testing.T) {
	r := newRig(t)
	a := r.h.accounts
	a.mu.Lock()
	a.perSecond, a.atOnce = 0.001, 3 // a fourth call would wait for a quarter of an hour
	a.mu.Unlock()
	w := r.dial(operatorUID, 10) // one call
	for range 2 {
		if err := w.call("List", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	w.send(`{"method":"dev.minimal.Host.List"}`)
	for range 10 {
		if err := r.dial(0, 11).call("List", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.dial(otherUID, 12).call("List", nil, nil); err != nil {
		t.Fatal(err)
	}
	w.c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := w.in.ReadByte(); err == nil {
		t.Error("the fourth call of three was answered")
	}
	w.c.Close() // ends the wait, or the rig would not stop
}

// TestIdle: a connection that is silent, owns nothing and waits for nothing is closed; others are not.
func TestIdle(t *testing.T) {
	r := newRig(t, func(c *Config) { c.IdleAfter = 50 * time.Millisecond })
	silent, planned, watching := r.dial(operatorUID, 10), r.dial(operatorUID, 11), r.dial(operatorUID, 12)
	plan := planned.plan(api.PlanIn{Name: "web"})
	watching.send(`{"method":"dev.minimal.Host.Watch","parameters":{},"more":true}`)
	if _, err := silent.receive(); !errors.Is(err, io.EOF) {
		t.Errorf("the silent connection: %v, want the end", err)
	}
	time.Sleep(200 * time.Millisecond) // several times as long
	if err := planned.call("Abandon", api.AbandonIn{Lease: plan.Lease}, nil); err != nil {
		t.Errorf("the connection with a plan: %v", err)
	}
	r.box(r.dial(operatorUID, 13), api.PlanIn{Name: "api"}, 20)
	for kind := api.EventKind(""); kind != api.EventKindAttached; {
		a, err := watching.receive()
		var out api.WatchOut
		if err == nil {
			err = json.Unmarshal(a.Parameters, &out)
		}
		if err != nil {
			t.Fatalf("the connection that watches: %v", err)
		}
		kind = out.Event.Kind
	}
	if _, err := planned.receive(); !errors.Is(err, io.EOF) {
		t.Errorf("the connection whose plan is over: %v, want the end", err)
	}
}

// TestConnectionsWithLeases: one that holds a lease is not counted, until it holds none any more.
func TestConnectionsWithLeases(t *testing.T) {
	r := newRig(t)
	var plans []*wire
	var last api.PlanOut
	for range maxConnections + 5 {
		w := r.dial(operatorUID, 10)
		last = w.plan(api.PlanIn{})
		plans = append(plans, w)
	}
	for range maxConnections - 1 {
		r.dial(operatorUID, 10)
	}
	if err := plans[len(plans)-1].call("Abandon", api.AbandonIn{Lease: last.Lease}, nil); err != nil {
		t.Fatal(err)
	}
	if err := r.refused(operatorUID, 10); err != maxConnections {
		t.Errorf("one more than %d without a lease: limit %d", maxConnections, err)
	}
}

// TestHolding: connections that hold leases are many, but not endless.
func TestHolding(t *testing.T) {
	a := newAccounts()
	all := func(of map[*conn]bool) int { return len(of) }
	for i := range maxHolding {
		if limit := a.enter(&conn{account: account{uid: operatorUID}}, all); limit != 0 {
			t.Fatalf("connection %d: limit %d", i, limit)
		}
	}
	if limit := a.enter(&conn{account: account{uid: operatorUID}}, all); limit != maxHolding {
		t.Errorf("one more: limit %d", limit)
	}
	if limit := a.enter(&conn{account: account{uid: otherUID}}, all); limit != 0 {
		t.Errorf("of another account: limit %d", limit)
	}
}

// TestForgetful: accounts that call no more are not remembered for ever, those that wait for their turn are.
func TestForgetful(t *testing.T) {
	a := newAccounts()
	for i := range maxForgetful {
		a.rates[account{uid: uint32(i + 1)}] = &bucket{}
	}
	a.rates[account{uid: 1}] = &bucket{taken: 1e9, at: time.Now()}
	if err := a.pace(t.Context(), account{uid: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	if a.rates[account{uid: 1}] == nil || len(a.rates) != 2 {
		t.Errorf("%d are remembered", len(a.rates))
	}
}

// TestConnectionsFromInside: a box cannot use up the connections of its runner's account.
func TestConnectionsFromInside(t *testing.T) {
	r := newRig(t)
	r.box(r.dial(operatorUID, 10), api.PlanIn{Name: "web"}, 20)
	for range maxFromInside {
		r.dial(operatorUID, 20)
	}
	if limit := r.refused(operatorUID, 20); limit != maxFromInside {
		t.Errorf("one more from inside: limit %d", limit)
	}
	for range maxConnections - 1 {
		r.dial(operatorUID, 10)
	}
}

// refused connects, and returns the limit for which it was refused; 0 when it was not.
func (r *rig) refused(uid uint32, pid int) int {
	r.t.Helper()
	r.mu.Lock()
	r.next = NewPeer(uid, pid, nil, func() error { return nil }, func() error { return nil })
	r.mu.Unlock()
	a, err := r.connect().receive()
	var many *api.TooManyConnections
	if err == nil && a.Error != "" && errors.As(api.DecodeError(a.Error, a.Parameters), &many) {
		return many.Limit
	}
	return 0
}

// TestSlowPeers: who does not finish a message, and who does not read, loses the connection.
func TestSlowPeers(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MessageTime = 50 * time.Millisecond })
	writer, reader := r.dial(operatorUID, 10), r.dial(operatorUID, 11)
	if _, err := writer.c.Write([]byte(`{"method":`)); err != nil {
		t.Fatal(err)
	}
	if _, err := writer.receive(); !errors.Is(err, io.EOF) {
		t.Errorf("half a message: %v, want the end", err)
	}
	trickle := r.dial(operatorUID, 12)
	r.eventually("the connection of who sends an octet now and then is closed", func() bool {
		time.Sleep(10 * time.Millisecond)
		_, err := trickle.c.Write([]byte("{"))
		return err != nil
	})
	reader.send(`{"method":"dev.minimal.Host.Watch","parameters":{},"more":true}`)
	r.eventually("the connection of who does not read is closed", func() bool {
		r.h.events.send(operatorUID, api.Event{Kind: api.EventKindRepaired, Text: strings.Repeat("x", 200)})
		r.h.accounts.mu.Lock()
		defer r.h.accounts.mu.Unlock()
		return len(r.h.accounts.open) == 0
	})
}
