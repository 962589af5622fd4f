package egress

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/verify/e2e/rig"
)

// timed gives the rules of a policy an end.
func timed(p api.Policy, end time.Time) []api.Rule {
	for i := range p.Rules {
		p.Rules[i].Until = end.UTC().Format(time.RFC3339Nano)
	}
	return p.Rules
}

// TestRuleEnds: at its end a rule is out of the verdict, and both ends of the flows that only it admitted know
// at once: to another host and to this one, TCP and UDP. What another rule admits goes on. It is told.
func TestRuleEnds(t *testing.T) {
	h := newHost(t)
	o := h.outside()
	told := map[string]chan string{}
	listen := func(address string) {
		l, err := net.Listen("tcp", address)
		h.must(err)
		t.Cleanup(func() { l.Close() })
		told[address] = make(chan string, 10)
		go echo(l, told[address])
	}
	local, away, kept := "127.0.0.1:8291", far+":8093", far+":8094"
	listen(local)
	o.do(func() { listen(away); listen(kept); serve("udp", away) })
	end := time.Now().Add(5 * time.Second)
	p := rules(far + " 8094 tcp")
	p.Rules = append(p.Rules, timed(rules("127.0.0.1 8291 tcp", far+" 8093 tcp", far+" 8093 udp", "10.0.0.0/8 8000-9000 tcp"), end)...)
	b := h.box("timed", p)
	expired := h.expired(b)
	for _, a := range []string{local, away, kept} {
		b.says("hold", "tcp", a, "ok")
	}
	b.says("hold", "udp", away, "ok")
	if !time.Now().Before(end.Add(-200 * time.Millisecond)) {
		t.Fatal("the machine took 5 s to make a box and four flows")
	}
	time.Sleep(time.Until(end.Add(-time.Second)))
	b.says("talk", "tcp", away, "ok")
	h.told(told, away, local)
	t.Logf("peers were told %v after the end", time.Since(end))
	b.says("talk", "tcp", local, "ECONNABORTED")
	b.says("talk", "tcp", away, "ECONNABORTED")
	if got := ask[string](b, order{Op: "talk", Network: "udp", Address: away}); got != "EPERM" && got != "EDESTADDRREQ" {
		t.Errorf("a datagram of an ended rule: %s", got)
	}
	b.says("talk", "tcp", kept, "ok")
	b.reaches("tcp", away, false)
	b.reaches("udp", away, false)
	b.reaches("tcp", kept, true)
	for range 3 { // one is covered by another
		select {
		case text := <-expired:
			if !strings.HasSuffix(text, " has ended") {
				t.Errorf("told: %s", text)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the end of a rule is not told")
		}
	}
	h.mended()
}

// expired is the texts of events about ended rules of a box.
func (h *host) expired(b *box) <-chan string {
	h.Helper()
	c := h.dial()
	texts := make(chan string, 10)
	go c.Watch(h.ctx(), api.WatchIn{Lease: b.plan.Lease}, func(e api.Event) error {
		if e.Kind == api.EventKindExpired {
			texts <- e.Text
		}
		return nil
	})
	return texts
}

// mended requires that the table is as the leases say.
func (h *host) mended() {
	h.Helper()
	out, err := h.dial().Repair(h.ctx())
	if h.must(err); len(out.Differences) != 0 {
		h.Errorf("the table differed: %v", out.Differences)
	}
}

// TestRuleEndsWithoutHelper: while no helper lives the kernel ends the rule, for flows that live as well; the
// next helper tells their peers and does not bring it back.
func TestRuleEndsWithoutHelper(t *testing.T) {
	h := newHost(t)
	o := h.outside()
	ends := make(chan string, 10)
	away, kept := far+":8093", far+":8094"
	o.do(func() {
		for _, a := range []string{away, kept} {
			l, err := net.Listen("tcp", a)
			h.must(err)
			t.Cleanup(func() { l.Close() })
			go echo(l, map[string]chan string{away: ends}[a])
		}
	})
	end := time.Now().Add(5 * time.Second)
	p := rules(far + " 8094 tcp")
	p.Rules = append(p.Rules, timed(rules(far+" 8093 tcp"), end)...)
	busy, idle := h.box("busy", p), h.box("idle", p)
	for _, b := range []*box{busy, idle} {
		b.says("hold", "tcp", away, "ok")
		b.says("hold", "tcp", kept, "ok")
	}
	h.signal("supervise", syscall.SIGSTOP) // or a helper comes back
	defer h.signal("supervise", syscall.SIGCONT)
	h.signal("helper", syscall.SIGKILL)
	if !time.Now().Before(end) {
		t.Fatal("the machine took 5 s to make two boxes and four flows")
	}
	time.Sleep(time.Until(end.Add(20 * time.Millisecond))) // the kernel counts in jiffies
	busy.says("talk", "tcp", away, "ECONNRESET")
	busy.reaches("tcp", away, false)
	busy.says("talk", "tcp", kept, "ok")
	busy.reaches("tcp", kept, true)
	h.signal("supervise", syscall.SIGCONT)
	list, err := h.dial().List(h.ctx())
	h.must(err)
	for _, l := range list.Leases {
		if len(l.Policy.Rules) != 1 {
			t.Errorf("box %s has %+v", l.Name, l.Policy.Rules)
		}
	}
	// The socket of the idle box still lived: now both of its ends are told. The busy one's was closed by the
	// kernel's answer to its box.
	select {
	case how := <-ends:
		h.must(map[bool]error{true: nil, false: errors.New(how)}[how == "ECONNRESET"])
	case <-time.After(5 * time.Second):
		t.Error("the peer is not told by the next helper")
	}
	idle.says("talk", "tcp", away, "ECONNABORTED")
	idle.reaches("tcp", away, false)
	idle.says("talk", "tcp", kept, "ok")
	h.mended()
}

// signal sends a signal to the processes of a role.
func (h *host) signal(role string, s syscall.Signal) {
	h.Helper()
	for _, p := range rig.Processes(h) {
		if p.Role() == role {
			syscall.Kill(p.PID, s)
		}
	}
}
