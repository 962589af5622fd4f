package helper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
)

// halt is a place in the helper where the first who comes by waits.
type halt struct {
	once          sync.Once
	reached, goOn chan struct{}
}

func newHalt() *halt { return &halt{reached: make(chan struct{}), goOn: make(chan struct{})} }

func (p *halt) pass() {
	p.once.Do(func() {
		close(p.reached)
		<-p.goOn
	})
}

// answered takes the reply to what was sent before.
func (w *wire) answered() error {
	w.t.Helper()
	a, err := w.receive()
	if err != nil {
		w.t.Fatal(err)
	}
	if a.Error == "" {
		return nil
	}
	return api.DecodeError(a.Error, a.Parameters)
}

// begin sends a call whose reply answered takes.
func (w *wire) begin(method string, in any) {
	w.t.Helper()
	b, err := json.Marshal(in)
	if err != nil {
		w.t.Fatal(err)
	}
	w.send(fmt.Sprintf(`{"method":"dev.minimal.Host.%s","parameters":%s}`, method, b))
}

// TestGoingBackIsAttaching: as long as a failed attach takes back what it did, nobody ends the box, root neither.
func TestGoingBackIsAttaching(t *testing.T) {
	for _, point := range []string{"restore", "publish", "delete", "unstore"} {
		t.Run(point, func(t *testing.T) {
			r := newRig(t)
			w, root := r.dial(operatorUID, 10), r.dial(0, 11)
			out := w.plan(api.PlanIn{Name: "web"})
			p := r.w.spawn(20, operatorUID)
			back := newHalt()
			failed := false
			r.w.setHook(func(at string) error {
				switch {
				case at == "moved":
					failed = true
					r.w.change(p, func(p *fakeProc) { p.children = true })
				case at == point && failed:
					back.pass()
				}
				return nil
			})
			w.begin("Attach", api.AttachIn{Lease: out.Lease, PID: 20})
			<-back.reached
			if err := root.call("Abandon", api.AbandonIn{Lease: out.Lease}, nil); shortName(err) != "Busy" {
				t.Errorf("abandon while the attach goes back: %v", err)
			}
			if r.w.zoneOf("web") != "invalid IP" && point == "delete" {
				t.Error("the name is there longer than the verdict")
			}
			close(back.goOn)
			if err := w.answered(); shortName(err) != "ProcessRefused" {
				t.Errorf("attach: %v", err)
			}
			if err := root.call("Abandon", api.AbandonIn{Lease: out.Lease}, nil); err != nil {
				t.Errorf("abandon behind it: %v", err)
			}
			r.atRest()
		})
	}
}

// TestLostAttachEndsOnce: of a failed attach whose connection is closed too, the helper ends the lease by itself. Who
// comes meanwhile does not end it a second time.
func TestLostAttachEndsOnce(t *testing.T) {
	between := newHalt()
	r := newRig(t, func(c *Config) {
		c.Log = slog.New(heard{c.Log.Handler(), func(text string) {
			if text == "connection closed during attach" {
				between.pass()
			}
		}})
	})
	w, root := r.dial(operatorUID, 10), r.dial(0, 11)
	out := w.plan(api.PlanIn{Name: "web"})
	r.w.spawn(20, operatorUID)
	r.w.setHook(func(at string) error {
		if at != "move" {
			return nil
		}
		w.c.Close()
		r.h.mu.Lock()
		c := r.h.boxes[out.Lease].owner
		r.h.mu.Unlock()
		<-c.ctx.Done()
		return errors.New("injected")
	})
	w.begin("Attach", api.AttachIn{Lease: out.Lease, PID: 20})
	<-between.reached
	err := root.call("Abandon", api.AbandonIn{Lease: out.Lease}, nil)
	close(between.goOn)
	if err != nil {
		t.Errorf("abandon of a lease that ends: %v", err)
	}
	r.atRest()
}

// heard tells a test of each line of the log.
type heard struct {
	slog.Handler
	line func(string)
}

func (h heard) Enabled(context.Context, slog.Level) bool { return true }
func (h heard) Handle(ctx context.Context, r slog.Record) error {
	h.line(r.Message)
	return h.Handler.Handle(ctx, r)
}
func (h heard) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h heard) WithGroup(string) slog.Handler      { return h }

// TestTeardownThatIsRefused: a teardown without kill that finds processes was never there: neither for the name, nor
// for the end of the connection that owns the box.
func TestTeardownThatIsRefused(t *testing.T) {
	for name, meanwhile := range map[string]func(r *rig, owner *wire){
		"another box is attached": func(r *rig, owner *wire) {
			r.box(r.dial(operatorUID, 12), api.PlanIn{Name: "api"}, 30)
			if r.w.zoneOf("web") != "127.0.64.1" {
				r.t.Errorf("web is at %s", r.w.zoneOf("web"))
			}
			r.w.procs[30].kill(r.w)
		},
		"its connection is closed": func(r *rig, owner *wire) {
			owner.c.Close()
			r.letGo()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			owner, w := r.dial(operatorUID, 10), r.dial(operatorUID, 11)
			out := r.box(owner, api.PlanIn{Name: "web", EndWithConnection: true}, 20)
			look := newHalt()
			r.w.setHook(func(at string) error {
				if at == "pids" {
					look.pass()
				}
				return nil
			})
			w.begin("Teardown", api.TeardownIn{Lease: out.Lease, Secret: out.Secret})
			<-look.reached
			meanwhile(r, owner)
			close(look.goOn)
			if err := w.answered(); err != nil && shortName(err) != "Busy" {
				t.Errorf("teardown: %v", err)
			}
			owner.c.Close()
			r.atRest()
		})
	}
}

// TestEndsOnce: while a box ends, neither another teardown nor the end of its connection ends it again.
func TestEndsOnce(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Grace = time.Hour })
	owner, w, other := r.dial(operatorUID, 10), r.dial(operatorUID, 11), r.dial(operatorUID, 12)
	out := r.box(owner, api.PlanIn{Name: "web", EndWithConnection: true}, 20)
	ending := newHalt()
	r.w.setHook(func(at string) error {
		if at == "rmdir" {
			ending.pass()
		}
		return nil
	})
	r.w.procs[20].kill(r.w)
	in := api.TeardownIn{Lease: out.Lease, Secret: out.Secret}
	w.begin("Teardown", in)
	<-ending.reached
	other.begin("Teardown", in)
	time.Sleep(20 * time.Millisecond) // that it waits, nobody can see
	owner.c.Close()
	r.letGo()
	close(ending.goOn)
	for _, w := range []*wire{w, other} {
		if err := w.answered(); err != nil {
			t.Error(err)
		}
	}
	r.atRest()
}
