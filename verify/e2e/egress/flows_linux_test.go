package egress

import (
	"net"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
)

// TestUpdateCutsFlows: a new policy ends what it does not admit and both ends are told; what it admits
// goes on, and so does what the box says to itself. The end of a box tells its peers too.
func TestUpdateCutsFlows(t *testing.T) {
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
	local, local2 := "127.0.0.1:8091", "127.0.0.1:8092"
	away, away2 := far+":8093", far+":8094"
	listen(local)
	listen(local2)
	o.do(func() { listen(away); listen(away2) })
	b := h.box("flows", api.Policy{Egress: api.EgressOpen})
	own := b.plan.Address + ":3000"
	b.says("serve", "tcp", own, "ok")
	all := []string{local, local2, away, away2, own}
	for _, a := range all {
		b.says("hold", "tcp", a, "ok")
	}
	fromHost, err := net.Dial("tcp", own)
	h.must(err)
	defer fromHost.Close()
	if got := talk(fromHost); got != "ok" {
		t.Fatal(got)
	}
	start := time.Now()
	b.update(rules("127.0.0.1 8091 tcp", far+" 8093 tcp"))
	h.told(told, local2, away2)
	t.Logf("peers were told %v after the call", time.Since(start))
	for i, want := range []string{"ok", "ECONNABORTED", "ok", "ECONNABORTED", "ok"} {
		b.says("talk", "tcp", all[i], want)
	}
	if got := talk(fromHost); got != "ok" {
		t.Errorf("this host to the box: %s", got)
	}
	p := rules("127.0.0.1 8091 tcp", far+" 8093 tcp")
	p.Ingress = api.IngressNone
	b.update(p)
	if got := talk(fromHost); got != "ECONNRESET" {
		t.Errorf("this host to a box that lets nobody in: %s", got)
	}
	b.end()
	h.told(told, local, away)
}

// told requires that servers learned of a reset.
func (h *host) told(ends map[string]chan string, addresses ...string) {
	h.Helper()
	for _, a := range addresses {
		select {
		case how := <-ends[a]:
			if how != "ECONNRESET" {
				h.Errorf("%s reads %s", a, how)
			}
		case <-time.After(2 * time.Second):
			h.Errorf("%s was not told", a)
		}
	}
	for a, c := range ends {
		if len(c) > 0 {
			h.Errorf("%s: %s", a, <-c)
		}
	}
}

// TestRuleByBox: box:api follows the box of that name, and needs its word too.
func TestRuleByBox(t *testing.T) {
	h := newHost(t)
	web := h.box("web", rules("box:api 3000 tcp"))
	inner := h.box("api", api.Policy{Egress: api.EgressDeny})
	first := inner.plan.Address + ":3000"
	inner.says("serve", "tcp", first, "ok")
	inner.says("serve", "tcp", inner.plan.Address+":3001", "ok")
	web.reaches("tcp", first, false)
	inner.update(api.Policy{Egress: api.EgressDeny, IngressBoxes: []string{"web"}})
	web.reaches("tcp", first, true)
	web.reaches("tcp", inner.plan.Address+":3001", false)
	other := h.box("other", rules("box:api 3000 tcp"))
	other.reaches("tcp", first, false)
	other.update(api.Policy{Egress: api.EgressOpen})
	other.reaches("tcp", first, false)
	web.says("hold", "tcp", first, "ok")
	inner.update(api.Policy{Egress: api.EgressDeny})
	web.says("talk", "tcp", first, "ECONNRESET")
	inner.end()
	again := h.box("api", api.Policy{Egress: api.EgressDeny, IngressBoxes: []string{"*"}})
	second := again.plan.Address + ":3000"
	if second == first {
		t.Fatal("the address of a box that just ended was given at once")
	}
	again.says("serve", "tcp", second, "ok")
	web.reaches("tcp", second, true)
	other.reaches("tcp", second, true)
	out, err := h.dial().Explain(h.ctx(), api.ExplainIn{Box: "web", Destination: "box:api:3000"})
	if h.must(err); !out.Allowed || out.Rule != "box:api:3000/tcp" {
		t.Errorf("explain: %+v", out)
	}
	again.end()
	if out, err = h.dial().Explain(h.ctx(), api.ExplainIn{Box: "web", Destination: "box:api:3000"}); err != nil || out.Allowed {
		t.Errorf("explain: %+v, %v", out, err)
	}
}
