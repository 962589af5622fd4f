package boxes

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
	"github.com/gominimal/minhost/verify/netlab"
)

// modelCallers are who plays: two runners of one account and one of another.
var modelCallers = []uint32{operatorUID, operatorUID, memberUID}

var modelNames = []string{"", "red", "green", "blue"}

// modelPolicies are told apart by where a box gets: port 8099 and 8098 of the host.
var modelPolicies = []struct {
	policy api.Policy
	admits [2]bool
}{
	{denyPolicy(), [2]bool{false, false}},
	{rules("127.0.0.1 8099 tcp"), [2]bool{true, false}},
	{openPolicy(), [2]bool{true, true}},
}

var modelPorts = [2]string{"127.0.0.1:8099", "127.0.0.1:8098"}

// modelBox is what the model knows of one lease that is not gone.
type modelBox struct {
	plan     api.PlanOut
	name     string
	caller   int // whose it is
	owner    int // whose connection it hangs on, -1 for nobody's
	policy   int
	ends     bool // with the connection
	attached bool
	agents   []*agent
}

// model is the machine: what the helper should have, and what was counted since it began to run.
type model struct {
	h     *host
	conns [3]*client.Client
	boxes []*modelBox
	steps map[string]int // of all histories, by name

	plans, attaches, abandons, teardowns int
}

// TestModel plays generated histories of runners, boxes and crashes against the real helper, and
// compares helper and kernel with the model after each step. MINHOST_HISTORIES plays more.
func TestModel(t *testing.T) {
	h := newHost(t)
	netlab.Echo(h, "tcp", modelPorts[0], 0)
	netlab.Echo(h, "tcp", modelPorts[1], 0)
	histories, steps := 0, map[string]int{}
	enough := 100
	if n, err := strconv.Atoi(os.Getenv("MINHOST_HISTORIES")); err == nil {
		enough = n
	}
	for seed := 0; histories < enough && !t.Failed(); seed++ {
		// rapid checks a hundred histories at a time unless a flag says otherwise.
		rapid.Check(t, func(rt *rapid.T) {
			if histories >= enough {
				return
			}
			histories++
			m := newModel(h, steps)
			rt.Repeat(m.actions())
			m.end(rt)
		})
	}
	t.Logf("%d histories: %v", histories, steps)
	for name := range (&model{h: h}).actions() {
		if name != "" && steps[name] == 0 && enough >= 100 {
			t.Errorf("no history had a %q", name)
		}
	}
	h.verified()
}

func newModel(h *host, steps map[string]int) *model {
	m := &model{h: h, steps: steps}
	m.dial()
	m.recount()
	return m
}

// dial gives every caller a new connection.
func (m *model) dial() {
	for i, uid := range modelCallers {
		if m.conns[i] != nil {
			m.conns[i].Close()
		}
		c, err := m.h.tryDial(uid)
		m.h.must(err)
		m.conns[i] = c
	}
}

// recount begins the counters anew: they are those of one life of the helper.
func (m *model) recount() {
	s, err := m.h.status()
	m.h.must(err)
	m.plans, m.attaches, m.abandons, m.teardowns = s.Plans, s.Attaches, s.Abandons, s.Teardowns
}

// pick chooses a box in one of the states, or skips the step.
func (m *model) pick(rt *rapid.T, attached bool) *modelBox {
	var fit []*modelBox
	for _, b := range m.boxes {
		if b.attached == attached {
			fit = append(fit, b)
		}
	}
	if len(fit) == 0 {
		rt.Skip("no box in this state")
	}
	return fit[rapid.IntRange(0, len(fit)-1).Draw(rt, "box")]
}

// held starts a process that a runner of the caller would hold.
func (m *model) held(caller int) *agent {
	return startAgent(m.h, netlab.Spawn{Leaf: netlab.NoLeaf, UID: modelCallers[caller]})
}

// forget takes a box out of the model; its processes are dead or die with the test's own hand.
func (m *model) forget(b *modelBox) {
	for _, a := range b.agents {
		a.Kill()
	}
	for i := range m.boxes {
		if m.boxes[i] == b {
			m.boxes = append(m.boxes[:i], m.boxes[i+1:]...)
			return
		}
	}
}

// want fails the history unless the error is the one that the state table has; "" is success.
func want(rt *rapid.T, what string, err error, name string) {
	rt.Helper()
	got := api.ErrorName(err)
	if err != nil && got == "" {
		rt.Fatalf("%s: %v", what, err)
	}
	if got != "" {
		got = got[len(api.Interface)+1:]
	}
	if got != name {
		rt.Fatalf("%s: %v; want %q", what, err, name)
	}
}

// end takes everything back as a runner would, then nothing may be left and the counters must fit.
func (m *model) end(rt *rapid.T) {
	for len(m.boxes) > 0 {
		b := m.boxes[0]
		if b.attached {
			m.teardown(rt, b)
		} else {
			want(rt, "abandon at the end", m.conns[b.owner].Abandon(m.h.ctx(), api.AbandonIn{Lease: b.plan.Lease}), "")
			m.abandons++
			m.forget(b)
		}
	}
	for _, c := range m.conns {
		c.Close()
	}
	if err := m.eventually(m.h.leftovers); err != nil {
		rt.Fatalf("left over: %v", err)
	}
	if err := m.counted(); err != nil {
		rt.Fatal(err)
	}
	if m.plans != m.attaches+m.abandons && m.attaches != m.teardowns {
		rt.Fatalf("the model itself does not add up: %+v", m)
	}
}

func (m *model) teardown(rt *rapid.T, b *modelBox) {
	rt.Helper()
	_, err := m.conns[b.caller].Teardown(m.h.ctx(), api.TeardownIn{Lease: b.plan.Lease, Secret: b.plan.Secret, Kill: true})
	want(rt, "teardown", err, "")
	m.teardowns++
	m.forget(b)
}

// eventually gives the helper a few seconds for what it does by itself.
func (m *model) eventually(check func() error) error {
	var err error
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if err = check(); err == nil {
			return nil
		}
	}
	return err
}

// counted compares the counters of the helper.
func (m *model) counted() error {
	s, err := m.h.status()
	if err != nil {
		return err
	}
	got := [4]int{s.Plans, s.Attaches, s.Abandons, s.Teardowns}
	if want := [4]int{m.plans, m.attaches, m.abandons, m.teardowns}; got != want {
		return fmt.Errorf("the helper counted plans, attaches, abandons, teardowns %v, the model %v", got, want)
	}
	return nil
}
