package egress

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/linux/belt"
	"github.com/gominimal/minhost/verify/e2e/rig"
	"github.com/gominimal/minhost/verify/netlab"
)

// rounds of the loops; MINHOST_SOAK sets another number.
const rounds = 50

func soak(t *testing.T) int {
	t.Helper()
	s := os.Getenv("MINHOST_SOAK")
	if s == "" {
		return rounds
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLayers takes away one layer after the other while a deny-all box, a listed box and a leaf that
// nobody knows try all that they are not allowed: the belt alone refuses, the table alone refuses, and no
// moment in between lets anything through. The host's own traffic never fails.
func TestLayers(t *testing.T) {
	n := soak(t)
	h := newHost(t)
	o := h.outside()
	for _, network := range []string{"tcp", "udp"} {
		for _, port := range []string{":8091", ":8092"} {
			serve(network, "127.0.0.1"+port)
			o.do(func() { serve(network, far+port) })
		}
	}
	sibling := h.box("sibling", api.Policy{Egress: api.EgressDeny})
	sibling.says("serve", "tcp", "127.0.0.1:3100", "ok")
	sibling.says("serve", "udp", "127.0.0.1:3100", "ok")
	forbidden := dials(20*time.Millisecond, "127.0.0.1:8092", far+":8092", "127.0.0.1:3100")
	hosts := probe(dials(2*time.Second, "127.0.0.1:8091", far+":8091"))
	deny, listed := h.box("d", api.Policy{Egress: api.EgressDeny}), h.box("l", rules("127.0.0.1 8091 tcp", far+" 8091 udp"))
	unknown := h.unknown()
	for b, targets := range map[*box][]netlab.Dial{listed: forbidden, unknown: append(forbidden, dials(20*time.Millisecond, "127.0.0.1:8091", far+":8091")...),
		deny: append(forbidden, dials(20*time.Millisecond, "127.0.0.1:8091", far+":8091")...)} {
		ask[string](b, order{Op: "probe", Targets: targets})
	}
	client := h.box("c", rules("127.0.0.1 8091 tcp", far+" 8091 udp"))
	deeds := h.deeds()
	leaked := map[*box]int{}
	for i := range n {
		d := deeds[i%len(deeds)]
		d.do()
		rig.Eventually(t, 30*time.Second, fmt.Sprintf("round %d, %s: allowed traffic is back", i, d.name), func() bool {
			return ask[netlab.Outcome](client, order{Op: "dial", Network: "tcp", Address: "127.0.0.1:8091"}).OK() &&
				ask[netlab.Outcome](client, order{Op: "dial", Network: "udp", Address: far + ":8091"}).OK()
		})
		for _, b := range []*box{deny, listed, unknown} {
			if now := ask[int](b, order{Op: "reached"}); now > leaked[b] {
				t.Errorf("round %d, %s: %s got through %d times", i, d.name, b.plan.Name, now-leaked[b])
				leaked[b] = now
			}
		}
	}
	for _, b := range []*box{deny, listed, unknown} {
		found := ask[tally](b, order{Op: "halt"})
		for key, tried := range found.Tried {
			if tried < n {
				t.Errorf("%s tried %s only %d times", b.plan.Name, key, tried)
			}
			if reached := found.Reached[key]; reached > 0 {
				t.Errorf("%s reached %s %d times of %d", b.plan.Name, key, reached, tried)
			}
		}
	}
	all := hosts.halt()
	for key, tried := range all.Tried {
		if tried < n || all.Reached[key] != tried {
			t.Errorf("host reached %s %d times of %d", key, all.Reached[key], tried)
		}
	}
	unknown.p.Kill()
	h.must(os.Remove(unknownDir))
}

const unknownDir = rig.Boxes + "/nobody-knows"

func (h *host) unknown() *box {
	h.Helper()
	h.must(os.Mkdir(unknownDir, 0o755))
	h.Cleanup(func() { os.Remove(unknownDir) })
	b := &box{h: h, p: netlab.Start(h, netlab.Spawn{Leaf: netlab.NoLeaf}, "agent"), plan: api.PlanOut{Name: "unknown leaf"}}
	b.p.Line()
	h.must(os.WriteFile(unknownDir+"/cgroup.procs", []byte(fmt.Sprint(b.p.PID())), 0))
	return b
}

func dials(timeout time.Duration, addresses ...string) (all []netlab.Dial) {
	for _, a := range addresses {
		for _, network := range []string{"tcp", "udp"} {
			all = append(all, netlab.Dial{Network: network, Address: a, Timeout: timeout})
		}
	}
	return all
}

type deed struct {
	name string
	do   func()
}

func (h *host) deeds() []deed {
	nft := func(words ...string) func() { return func() { h.run("/usr/sbin/nft", words...) } }
	signal := func(role string, s syscall.Signal) {
		for _, p := range rig.Processes(h) {
			if p.Role() == role {
				syscall.Kill(p.PID, s)
			}
		}
	}
	wait := func() { time.Sleep(50 * time.Millisecond) }
	alone := func(f func()) func() {
		return func() {
			signal("supervise", syscall.SIGSTOP) // or a helper comes back
			defer signal("supervise", syscall.SIGCONT)
			signal("helper", syscall.SIGKILL)
			wait()
			f()
		}
	}
	tableAlone := func() {
		h.belt((*belt.Belt).Detach)
		wait()
		h.belt((*belt.Belt).Apply)
	}
	return []deed{
		{"ruleset flushed", nft("flush", "ruleset")},
		{"table deleted", nft("delete", "table", "inet", "minhost")},
		{"the boxes' chain emptied", nft("flush", "chain", "inet", "minhost", "box_out")},
		{"the input chain emptied", nft("flush", "chain", "inet", "minhost", "in")},
		{"helper killed", func() { signal("helper", syscall.SIGKILL) }},
		{"the table alone", tableAlone},
		{"no helper, the table alone", alone(tableAlone)},
		{"no helper, the belt alone", alone(func() {
			// A helper that was starting may have the table in hand.
			exec.Command("/usr/sbin/nft", "delete", "table", "inet", "minhost").Run()
			wait()
		})},
		{"the table of a helper that does not start", alone(func() {
			exec.Command("/usr/sbin/nft", "delete", "table", "inet", "minhost").Run()
			h.skeleton()
			wait()
		})},
	}
}

func (h *host) belt(do func(*belt.Belt) error) {
	h.Helper()
	h.must(ground.Belt(do))
}
