package helper

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/gominimal/minhost/installer/api"
)

// TestListen: what is handed out, and what the kernel's words become.
func TestListen(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	box, nameless := r.box(w, api.PlanIn{Name: "web"}, 20), r.box(w, api.PlanIn{}, 21)
	listen := func(p api.PlanOut, in api.ListenIn) (api.ListenOut, error) {
		in.Lease, in.Secret = p.Lease, p.Secret
		var out api.ListenOut
		return out, w.call("Listen", in, &out)
	}
	out, err := listen(box, api.ListenIn{Protocol: api.ProtocolTCP, Port: 80})
	if err != nil || w.took() == nil || netip.MustParseAddr(out.Address).String() != box.Address || out.Port != 80 {
		t.Errorf("%v %+v", err, out)
	}
	for name, c := range map[string]struct {
		fails error
		box   api.PlanOut
		in    api.ListenIn
		want  string
	}{
		"taken":      {syscall.EADDRINUSE, box, api.ListenIn{Protocol: api.ProtocolUDP, Port: 80}, "CannotListen"},
		"no address": {syscall.EADDRNOTAVAIL, box, api.ListenIn{Protocol: api.ProtocolTCP, Port: 80}, "CannotListen"},
		"forbidden":  {syscall.EACCES, box, api.ListenIn{Protocol: api.ProtocolTCP, Port: 80}, "CannotListen"},
		"broken":     {errors.New("broken"), box, api.ListenIn{Protocol: api.ProtocolTCP, Port: 80}, "Internal"},
		"nameless":   {nil, nameless, api.ListenIn{Protocol: api.ProtocolTCP, Port: 80}, "CannotListen"},
		"any":        {nil, box, api.ListenIn{Protocol: api.ProtocolAny, Port: 80}, "InvalidArgument"},
		"port":       {nil, box, api.ListenIn{Protocol: api.ProtocolTCP, Port: 65536}, "InvalidArgument"},
		"below 0":    {nil, box, api.ListenIn{Protocol: api.ProtocolTCP, Port: -1}, "InvalidArgument"},
	} {
		r.w.setHook(func(point string) error {
			if point == "listen" {
				return c.fails
			}
			return nil
		})
		if _, err := listen(c.box, c.in); shortName(err) != c.want || w.took() != nil {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// TestListenOfABoxThatEnded: a socket that was made while its box ended is not given to anybody: its address may be
// another box's a moment later.
func TestListenOfABoxThatEnded(t *testing.T) {
	r := newRig(t)
	w, other := r.dial(operatorUID, 10), r.dial(operatorUID, 11)
	box := r.box(w, api.PlanIn{Name: "web"}, 20)
	making := newHalt()
	r.w.setHook(func(point string) error {
		if point == "listen" {
			making.pass()
		}
		return nil
	})
	w.begin("Listen", api.ListenIn{Lease: box.Lease, Secret: box.Secret, Protocol: api.ProtocolTCP, Port: 80})
	<-making.reached
	if err := other.call("Teardown", api.TeardownIn{Lease: box.Lease, Secret: box.Secret, Kill: true}, nil); err != nil {
		t.Fatal(err)
	}
	close(making.goOn)
	if err := w.answered(); shortName(err) != "NoSuchLease" || w.took() != nil {
		t.Errorf("listen: %v", err)
	}
	r.atRest()
}

// TestNoSockets: a host whose helper makes none.
func TestNoSockets(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Sockets = nil })
	w := r.dial(operatorUID, 10)
	box := r.box(w, api.PlanIn{Name: "web"}, 20)
	in := api.ListenIn{Lease: box.Lease, Secret: box.Secret, Protocol: api.ProtocolTCP, Port: 80}
	if err := w.call("Listen", in, nil); shortName(err) != "NotSupported" {
		t.Error(err)
	}
	r.w.procs[20].kill(r.w)
	r.atRest()
}

// TestChildrenAreBounded: many callers of Listen at once do not make many processes at once.
func TestChildrenAreBounded(t *testing.T) {
	r := newRig(t)
	box := r.box(r.dial(operatorUID, 10), api.PlanIn{Name: "web"}, 20)
	other := r.boxOf(otherUID, r.dial(otherUID, 11), api.PlanIn{Name: "api"}, 21)
	var now, most atomic.Int32
	leave := make(chan struct{})
	r.w.setHook(func(point string) error {
		if point == "listen" {
			n := now.Add(1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			<-leave
			now.Add(-1)
		}
		return nil
	})
	var callers []*wire
	listen := func(w *wire, p api.PlanOut) {
		w.send(fmt.Sprintf(`{"method":"dev.minimal.Host.Listen","parameters":{"lease":%q,"secret":%q,"protocol":"tcp","port":0}}`, p.Lease, p.Secret))
		callers = append(callers, w)
	}
	for range maxChildren + 4 {
		listen(r.dial(operatorUID, 10), box)
	}
	r.eventually("as many as may be", func() bool { return now.Load() == maxChildren })
	listen(r.dial(otherUID, 11), other)
	r.eventually("another account does not wait", func() bool { return now.Load() == maxChildren+1 })
	last := callers[len(callers)-2]
	callers = slices.DeleteFunc(callers, func(w *wire) bool { return w == last })
	open := r.connections()
	last.c.Close()
	r.eventually("who is gone waits no longer", func() bool { return r.connections() == open-1 })
	close(leave)
	for _, w := range callers {
		if a, err := w.receive(); err != nil || a.Error != "" {
			t.Errorf("%v %s", err, a.Error)
		}
		w.took()
	}
	if most.Load() != maxChildren+1 {
		t.Errorf("%d at once, at most %d of one account and 1 of another may be", most.Load(), maxChildren)
	}
}

// connections that are open, of all accounts.
func (r *rig) connections() (n int) {
	r.h.accounts.mu.Lock()
	defer r.h.accounts.mu.Unlock()
	for _, of := range r.h.accounts.open {
		n += len(of)
	}
	return n
}

// TestChildrenLeaveTheirPlaces, those that make taps too.
func TestChildrenLeaveTheirPlaces(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	for i := range maxChildren + 1 {
		plan := w.plan(ownIP)
		r.w.spawnIn(20+i, uint64(70+i))
		if err := w.call("Attach", api.AttachIn{Lease: plan.Lease, PID: 20 + i}, nil); err != nil {
			t.Fatal(err)
		}
		w.took()
		r.w.procs[20+i].kill(r.w)
	}
	r.atRest()
}
