package boxes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/e2e/rig"
	"github.com/gominimal/minhost/verify/netlab"
)

// rounds of a disaster; all probers try all the time.
const rounds = 25

// TestDisasters: whatever is done to table, helper and supervisor, boxes reach nothing that they may
// not, at no moment, and the host is never refused.
func TestDisasters(t *testing.T) {
	h := newHost(t)
	o := h.outside()
	s := h.services(o)
	deny, listed := h.box("d", denyPolicy()), h.box("l", rules("127.0.0.1 8099 tcp", o.far4()+" 8005 tcp"))
	lookalike := h.box("q", openPolicy()) // a box that another may not reach, whatever happens
	lookalike.serve("tcp", "127.0.0.1:3102")
	lookalike.serve("udp", "127.0.0.1:3102")
	allowed := []place{{"tcp", "127.0.0.1:8099"}, {"tcp", atPort(o.far4(), 8005)}}
	sibling := []place{{"tcp", "127.0.0.1:3102"}, {"udp", "127.0.0.1:3102"}}
	forbidden := join(s.listed, s.other, s.far, s.farOther, s.sibling, s.pings, sibling)
	ask[bool](deny.agent, "probe", dials(forbidden, 50*time.Millisecond))
	ask[bool](listed.agent, "probe", dials(without(forbidden, allowed), 50*time.Millisecond))
	unknown := h.unknownLeaf()
	ask[bool](unknown, "probe", dials(join(forbidden, []place{{"tcp", "127.0.0.1:15354"}}), 50*time.Millisecond))
	host := probe(dials(join(s.listed, s.far), time.Second))

	var back []time.Duration
	for i := range rounds {
		name, do := disaster(h, i)
		do()
		took := h.within(20*time.Second, name+": allowed traffic is back", func() error {
			if o := (listed.quickly(allowed)); o != "" {
				return errors.New(o)
			}
			return nil
		})
		if strings.HasPrefix(name, "nft") {
			back = append(back, took)
			if took > 5*time.Second {
				t.Errorf("round %d, %s: allowed traffic was back after %v; want a second, and no more than 5 on a machine that does much else", i, name, took)
				t.Log(h.run("/bin/sh", "-c", "grep -E 'WARN|ERROR|ready' "+layout.Log+" | tail -n 12"))
			}
		}
		h.waitHelper()
	}
	slices.Sort(back)
	t.Logf("allowed traffic was back after nft: %v", back)
	if m := back[len(back)/2]; m > time.Second {
		t.Errorf("at the median allowed traffic was back after %v; want 1s", m)
	}
	for name, a := range map[string]*agent{"deny-all box": deny.agent, "listed box": listed.agent, "unknown leaf": unknown} {
		h.never(name, ask[tally](a, "halt", struct{}{}))
	}
	h.always("host", host.halt())
	unknown.Kill()
	h.must(os.Remove(unknownDir))
	h.verified()
}

// disaster is the deed of one round.
func disaster(h *host, round int) (name string, do func()) {
	kill := func(role string) func() {
		return func() {
			for _, p := range rig.Processes(h) {
				if p.Role() == role {
					p.Kill()
				}
			}
		}
	}
	switch round % 5 {
	case 0:
		return "nft flush ruleset", func() { h.run("/usr/sbin/nft", "flush", "ruleset") }
	case 1:
		return "nft delete table", func() { h.run("/usr/sbin/nft", "delete", "table", "inet", "minhost") }
	case 2:
		return "helper killed", kill("helper")
	case 3:
		return "helper killed and table flushed", func() {
			kill("helper")()
			// The helper comes back at any moment and may be in the way: the flush counts, not its status.
			exec.Command("/usr/sbin/nft", "flush", "ruleset").Run()
		}
	}
	return "supervisor killed, table flushed, all started again", func() {
		kill("supervise")()
		h.run("/usr/sbin/nft", "flush", "ruleset")
		time.Sleep(50 * time.Millisecond)
		kill("helper")()
		if r := h.minhost(0, "apply"); r.status != 0 {
			h.Errorf("apply: status %d: %s%s", r.status, r.stdout, r.stderr)
		}
	}
}

// TestHelperGone: with no helper at all the belt and the table refuse, and a flush closes boxes.
func TestHelperGone(t *testing.T) {
	h := newHost(t)
	o := h.outside()
	s := h.services(o)
	listed := h.box("l", rules("127.0.0.1 8099 tcp"))
	allowed := []place{{"tcp", "127.0.0.1:8099"}}
	forbidden := without(join(s.listed, s.other, s.far, s.farOther, s.sibling, s.pings), allowed)
	for _, p := range rig.Processes(t) {
		if p.Role() == "supervise" {
			syscall.Kill(p.PID, syscall.SIGSTOP) // nobody starts a helper again
			defer syscall.Kill(p.PID, syscall.SIGCONT)
		}
	}
	for _, p := range rig.Processes(t) {
		if p.Role() == "helper" {
			p.Kill()
		}
	}
	listed.expect(allowed, forbidden) // the verdict is the kernel's
	h.run("/usr/sbin/nft", "flush", "ruleset")
	for _, p := range join(allowed, forbidden) {
		if d := listed.try(p.network, p.address); d.OK() {
			t.Errorf("flushed, no helper: the box reaches %s %s", p.network, p.address)
		}
	}
	for _, p := range join(s.listed, s.other, s.far) {
		if d := (netlab.Dial{Network: p.network, Address: p.address}.Do()); !d.OK() {
			t.Errorf("flushed, no helper: host, %s %s: %v", p.network, p.address, d)
		}
	}
	for _, p := range rig.Processes(t) {
		if p.Role() == "supervise" {
			syscall.Kill(p.PID, syscall.SIGCONT)
		}
	}
	h.waitHelper()
	listed.expect(allowed, forbidden)
}

func dials(places []place, timeout time.Duration) (list []netlab.Dial) {
	for _, p := range places {
		list = append(list, netlab.Dial{Network: p.network, Address: p.address, Timeout: timeout})
	}
	return list
}

// quickly tries places with a short timeout and names the first that fails.
func (b *box) quickly(places []place) string {
	b.h.Helper()
	for _, d := range dials(places, 50*time.Millisecond) {
		if o := ask[netlab.Outcome](b.agent, "dial", d); !o.OK() {
			return fmt.Sprintf("%s %s: %v", d.Network, d.Address, o)
		}
	}
	return ""
}

const unknownDir = boxesDir + "/e2e-unknown"

// unknownLeaf is an agent in a leaf that no lease has, gone at the end of the test.
func (h *host) unknownLeaf() *agent {
	h.Helper()
	h.must(os.Mkdir(unknownDir, 0o755))
	h.Cleanup(func() { os.Remove(unknownDir) }) // leaf checks of clean see it if it stays
	a := startAgent(h, netlab.Spawn{Leaf: netlab.NoLeaf, UID: operatorUID})
	h.must(writeFile(unknownDir+"/cgroup.procs", fmt.Sprint(a.PID())))
	return a
}

// never requires that a prober tried everything often and reached nothing.
func (h *host) never(who string, found tally) {
	h.Helper()
	for key, n := range found.Reached {
		h.Errorf("%s reached %s %d times of %d", who, key, n, found.Tried[key])
	}
	for key, n := range found.Tried {
		if n < 20 {
			h.Errorf("%s tried %s only %d times", who, key, n)
		}
	}
}

// always requires that a prober reached everything each time.
func (h *host) always(who string, found tally) {
	h.Helper()
	for key, n := range found.Tried {
		if n != found.Reached[key] || n < 20 {
			h.Errorf("%s reached %s %d times of %d: %s", who, key, found.Reached[key], n, found.Failed[key])
		}
	}
}
