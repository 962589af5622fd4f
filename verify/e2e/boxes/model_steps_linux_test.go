package boxes

import (
	"fmt"
	"syscall"

	"pgregory.net/rapid"

	"github.com/gominimal/minhost/installer/api"
)

// actions are the steps of a history, counted by name. The one without a name follows each other.
func (m *model) actions() map[string]func(*rapid.T) {
	all := map[string]func(*rapid.T){"": m.check}
	for name, step := range map[string]func(*rapid.T){
		"plan": m.doPlan, "attach": m.doAttach, "attach on another's connection": m.attachElsewhere, "attach a dead process": m.attachDead,
		"join": m.doJoin, "update": m.doUpdate, "listen": m.doListen, "abandon": m.doAbandon, "teardown": m.doTeardown,
		"calls in the wrong state": m.wrongState, "calls with a wrong secret": m.wrongSecret, "calls of a stranger": m.stranger,
		"kill box": m.killBox, "close": m.doClose, "kill helper": m.killHelper,
	} {
		all[name] = func(rt *rapid.T) {
			step(rt)
			if name != "close" && name != "kill helper" {
				m.steps[name]++
			}
		}
	}
	return all
}

func (m *model) doPlan(rt *rapid.T) {
	if len(m.boxes) >= 5 {
		rt.Skip("enough boxes")
	}
	b := &modelBox{
		caller: rapid.IntRange(0, len(m.conns)-1).Draw(rt, "caller"), name: rapid.SampledFrom(modelNames).Draw(rt, "name"),
		policy: rapid.IntRange(0, len(modelPolicies)-1).Draw(rt, "policy"), ends: rapid.Bool().Draw(rt, "ends"),
	}
	b.owner = b.caller
	taken := ""
	for _, o := range m.boxes {
		if o.name == b.name && b.name != "" {
			taken = "NameTaken"
		}
	}
	in := planIn(b.name, modelPolicies[b.policy].policy)
	in.EndWithConnection = b.ends
	out, err := m.conns[b.caller].Plan(m.h.ctx(), in)
	want(rt, "plan", err, taken)
	if err == nil {
		b.plan = out
		m.boxes = append(m.boxes, b)
		m.plans++
	}
}

func (m *model) doAttach(rt *rapid.T) {
	b := m.pick(rt, false)
	a := m.held(b.caller)
	want(rt, "attach", m.conns[b.owner].Attach(m.h.ctx(), api.AttachIn{Lease: b.plan.Lease, PID: a.PID()}, nil), "")
	b.attached, b.agents = true, []*agent{a}
	m.attaches++
}

func (m *model) attachElsewhere(rt *rapid.T) {
	b := m.pick(rt, false)
	a := m.held(b.caller)
	defer a.Kill()
	other := (b.owner + 1) % len(m.conns)
	name := "NotAllowed"
	if modelCallers[other] != modelCallers[b.caller] {
		name = "NoSuchLease"
	}
	want(rt, "attach on another connection", m.conns[other].Attach(m.h.ctx(), api.AttachIn{Lease: b.plan.Lease, PID: a.PID()}, nil), name)
}

func (m *model) attachDead(rt *rapid.T) {
	b := m.pick(rt, false)
	a := m.held(b.caller)
	a.Kill()
	want(rt, "attach of a dead process", m.conns[b.owner].Attach(m.h.ctx(), api.AttachIn{Lease: b.plan.Lease, PID: a.PID()}, nil), "NoSuchProcess")
}

func (m *model) doJoin(rt *rapid.T) {
	b := m.pick(rt, true)
	a := m.held(b.caller)
	_, _, err := m.conns[b.caller].Join(m.h.ctx(), api.JoinIn{Lease: b.plan.Lease, Secret: b.plan.Secret, Kind: api.JoinKindTask, Name: "t", PID: a.PID()}, nil)
	want(rt, "join", err, "")
	b.agents = append(b.agents, a)
}

func (m *model) doUpdate(rt *rapid.T) {
	b := m.pick(rt, true)
	policy := rapid.IntRange(0, len(modelPolicies)-1).Draw(rt, "policy")
	want(rt, "update", m.conns[b.caller].Update(m.h.ctx(), api.UpdateIn{Lease: b.plan.Lease, Secret: b.plan.Secret, Policy: new(modelPolicies[policy].policy)}), "")
	b.policy = policy
}

func (m *model) doListen(rt *rapid.T) {
	b := m.pick(rt, true)
	name := ""
	if b.plan.Address == "" {
		return
	}
	protocol := rapid.SampledFrom([]api.Protocol{api.ProtocolTCP, api.ProtocolUDP}).Draw(rt, "protocol")
	out, socket, err := m.conns[b.caller].Listen(m.h.ctx(), api.ListenIn{Lease: b.plan.Lease, Secret: b.plan.Secret, Protocol: protocol})
	want(rt, "listen", err, name)
	defer socket.Close()
	if out.Address != b.plan.Address || out.Port == 0 {
		rt.Fatalf("listen: %+v, want %s", out, b.plan.Address)
	}
}

func (m *model) doAbandon(rt *rapid.T) {
	b := m.pick(rt, false)
	for range 2 { // the second answer is the first one's
		want(rt, "abandon", m.conns[b.owner].Abandon(m.h.ctx(), api.AbandonIn{Lease: b.plan.Lease}), "")
	}
	m.abandons++
	m.forget(b)
}

func (m *model) doTeardown(rt *rapid.T) {
	b := m.pick(rt, true)
	in := api.TeardownIn{Lease: b.plan.Lease, Secret: b.plan.Secret}
	_, err := m.conns[b.caller].Teardown(m.h.ctx(), in)
	want(rt, "teardown of a box that lives", err, "Busy")
	m.teardown(rt, b)
	_, err = m.conns[b.caller].Teardown(m.h.ctx(), in)
	want(rt, "teardown again", err, "")
}

func (m *model) wrongState(rt *rapid.T) {
	b := m.pick(rt, false)
	c, id, secret := m.conns[b.caller], b.plan.Lease, b.plan.Secret
	want(rt, "update of a plan", c.Update(m.h.ctx(), api.UpdateIn{Lease: id, Secret: secret, Policy: new(openPolicy())}), "WrongState")
	want(rt, "adopt of a plan", c.Adopt(m.h.ctx(), api.AdoptIn{Lease: id, Secret: secret}), "WrongState")
	_, err := c.Teardown(m.h.ctx(), api.TeardownIn{Lease: id, Secret: secret, Kill: true})
	want(rt, "teardown of a plan", err, "WrongState")
	_, _, err = c.Listen(m.h.ctx(), api.ListenIn{Lease: id, Secret: secret, Protocol: api.ProtocolTCP})
	want(rt, "listen of a plan", err, "WrongState")
}

func (m *model) wrongSecret(rt *rapid.T) {
	b := m.pick(rt, true)
	c, id := m.conns[b.caller], b.plan.Lease
	want(rt, "update", c.Update(m.h.ctx(), api.UpdateIn{Lease: id, Secret: "guess", Policy: new(openPolicy())}), "WrongSecret")
	_, err := c.Teardown(m.h.ctx(), api.TeardownIn{Lease: id, Secret: "guess", Kill: true})
	want(rt, "teardown", err, "WrongSecret")
	want(rt, "abandon of a box", c.Abandon(m.h.ctx(), api.AbandonIn{Lease: id}), "WrongState")
}

func (m *model) stranger(rt *rapid.T) {
	b := m.pick(rt, true)
	for i, uid := range modelCallers {
		if uid != modelCallers[b.caller] {
			want(rt, "update by another account", m.conns[i].Update(m.h.ctx(),
				api.UpdateIn{Lease: b.plan.Lease, Secret: b.plan.Secret, Policy: new(openPolicy())}), "NoSuchLease")
		}
	}
}

// killBox ends every process of a box behind the helper's back: it is torn down after its grace.
func (m *model) killBox(rt *rapid.T) {
	b := m.pick(rt, true)
	m.teardowns++
	m.forget(b)
	m.gone(rt, b)
}

// gone waits until the helper has noticed.
func (m *model) gone(rt *rapid.T, boxes ...*modelBox) {
	err := m.eventually(func() error {
		leases, err := m.h.leases()
		for _, l := range leases {
			for _, b := range boxes {
				if l.Lease == b.plan.Lease {
					return fmt.Errorf("%s %s is %s still", l.Lease, l.Name, l.State)
				}
			}
		}
		return err
	})
	if err != nil {
		rt.Fatal(err)
	}
}

// lucky is true one time in so many. (To skip a step that has drawn would end the history.)
func lucky(rt *rapid.T, many int) bool { return rapid.IntRange(1, many).Draw(rt, "luck") == many }

// doClose ends a connection: its plans go, and the boxes that end with it.
func (m *model) doClose(rt *rapid.T) {
	if !lucky(rt, 3) {
		return
	}
	m.steps["close"]++
	i := rapid.IntRange(0, len(m.conns)-1).Draw(rt, "connection")
	m.conns[i].Close()
	var lost []*modelBox
	for _, b := range m.boxes {
		if b.owner == i && (!b.attached || b.ends) {
			lost = append(lost, b)
		} else if b.owner == i {
			b.owner = -1
		}
	}
	for _, b := range lost {
		if b.attached {
			m.teardowns++
		} else {
			m.abandons++
		}
		m.gone(rt, b)
		m.forget(b)
	}
	c, err := m.h.tryDial(modelCallers[i])
	m.h.must(err)
	m.conns[i] = c
}

// killHelper ends the helper as a fault would. Its successor has no plan, and every box as it was; those
// that end with their connection are adopted.
func (m *model) killHelper(rt *rapid.T) {
	if !lucky(rt, 10) { // its successor takes a while
		return
	}
	m.steps["kill helper"]++
	pid := m.h.killHelper()
	if err := m.eventually(func() error {
		s, err := m.h.status()
		if err == nil && s.PID == pid {
			err = syscall.EAGAIN
		}
		return err
	}); err != nil {
		rt.Fatalf("no other helper answers: %v", err)
	}
	m.dial()
	m.recount()
	for _, b := range append([]*modelBox(nil), m.boxes...) {
		b.owner = -1
		if !b.attached {
			m.gone(rt, b)
			m.forget(b)
		} else if b.ends {
			want(rt, "adopt", m.conns[b.caller].Adopt(m.h.ctx(), api.AdoptIn{Lease: b.plan.Lease, Secret: b.plan.Secret}), "")
			b.owner = b.caller
		}
	}
}
