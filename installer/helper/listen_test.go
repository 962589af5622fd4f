package helper

import (
	"errors"
	"fmt"
	"net/netip"
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
