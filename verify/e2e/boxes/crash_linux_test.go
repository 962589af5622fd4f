package boxes

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/verify/e2e/rig"
	"github.com/gominimal/minhost/verify/netlab"
)

// TestHelperKilled: whenever the helper is killed, its successor and the kernel agree within two
// seconds of its return, and boxes that live keep all they have.
func TestHelperKilled(t *testing.T) {
	h := newHost(t)
	netlab.Echo(h, "tcp", "127.0.0.1:8099", 0)
	netlab.Echo(h, "tcp", "127.0.0.1:8098", 0)
	keep := h.box("keep", rules("127.0.0.1 8099 tcp"))
	kinds := slices.Sorted(maps.Keys(cycles))
	for round := range 10 {
		var work sync.WaitGroup
		var over atomic.Bool
		for i := range 4 {
			work.Go(func() {
				for j := i; !over.Load(); j++ { // calls fail when the helper goes
					h.live(fmt.Sprintf("r%d-%d-%d", round, i, j), cycles[kinds[j%len(kinds)]])
				}
			})
		}
		time.Sleep(rand.N(120 * time.Millisecond))
		pid := h.killHelper()
		over.Store(true)
		work.Wait()
		h.within(5*time.Second, "another helper answers", func() error {
			s, err := h.status()
			if err == nil && s.PID == pid {
				err = fmt.Errorf("helper %d still answers", pid)
			}
			return err
		})
		h.within(2*time.Second, fmt.Sprintf("round %d: helper and kernel agree", round), h.agree)
		keep.whole()
		if t.Failed() {
			t.Log(h.run("tail", "-n", "40", layout.Log))
			return
		}
	}
	h.verified()
}

func (h *host) killHelper() (pid int) {
	h.Helper()
	for _, p := range rig.Processes(h) {
		if p.Role() == "helper" {
			pid = p.PID
			p.Kill()
		}
	}
	return pid
}

// whole requires verdict, name, address and secret of a box that may reach port 8099 of the host.
func (b *box) whole() {
	b.h.Helper()
	b.reaches("tcp", "127.0.0.1:8099")
	b.refused("tcp", "127.0.0.1:8098")
	a, err := lookup(query{"udp", "127.0.0.1:15353", b.plan.Name + ".min.internal", dns.TypeA})
	if err != nil || a.Address != b.plan.Address {
		b.h.Errorf("%v: lookup: %+v, %v; want %s", b, a, err, b.plan.Address)
	}
	leases, err := b.h.leases()
	b.h.must(err)
	found := false
	for _, l := range leases {
		found = found || l.Lease == b.plan.Lease && l.Name == b.plan.Name && l.Address == b.plan.Address && l.State == api.LeaseStateAttached
	}
	if !found {
		b.h.Errorf("%v is not listed as it was: %+v", b, leases)
	}
	b.update(rules("127.0.0.1 8099 tcp")) // the secret is still good
	bad := b.h.dial(operatorUID).Update(b.h.ctx(), api.UpdateIn{Lease: b.plan.Lease, Secret: "0" + b.plan.Secret[1:], Policy: new(openPolicy())})
	if b.plan.Secret[0] != '0' && api.ErrorName(bad) != "dev.minimal.Host.WrongSecret" {
		b.h.Errorf("%v: update with another secret: %v", b, bad)
	}
}

// TestRunnerKilled: kill -9 of the runner at any moment takes its box with it, within two seconds.
func TestRunnerKilled(t *testing.T) {
	h := newHost(t)
	before, after := 0, 0
	for round := range 40 {
		cmd := h.command(operatorUID, "run", "--name", "killed", "--egress", "deny", "--", "/bin/sh", "-c", "setsid sleep 4712 & exec sleep 4712")
		h.must(cmd.Start())
		time.Sleep(rand.N(60 * time.Millisecond))
		if len(processesOf("sleep 4712")) > 0 {
			after++
		} else {
			before++
		}
		h.must(cmd.Process.Kill())
		cmd.Wait()
		h.within(2*time.Second, fmt.Sprintf("round %d: the box of a killed runner is gone", round), func() error {
			if left := processesOf("sleep 4712"); len(left) > 0 {
				return fmt.Errorf("processes %v live", left)
			}
			if left := processesOf("hold-child"); len(left) > 0 {
				return fmt.Errorf("held children %v live", left)
			}
			return h.leftovers()
		})
	}
	t.Logf("%d killed before the program ran, %d after", before, after)
	if before == 0 || after == 0 {
		t.Error("the runner was killed at one side of the start only")
	}
}

// TestHelperAndRunnerKilled: neither is there to clean up after the other.
func TestHelperAndRunnerKilled(t *testing.T) {
	h := newHost(t)
	waited := false // once is enough
	for round := range 5 {
		cmd := h.command(operatorUID, "run", "--name", "both", "--", "/bin/sh", "-c", "exec sleep 4713")
		h.must(cmd.Start())
		time.Sleep(rand.N(60 * time.Millisecond))
		h.killHelper()
		h.must(cmd.Process.Kill())
		cmd.Wait()
		// A box whose connection was lost with the helper waits ten seconds to be adopted; a plan is
		// gone with the helper.
		limit := 2 * time.Second
		if len(processesOf("sleep 4713")) > 0 {
			if waited {
				for _, pid := range processesOf("sleep 4713") {
					syscall.Kill(pid, syscall.SIGKILL)
				}
			} else {
				limit, waited = 13*time.Second, true
			}
		}
		h.waitHelper()
		h.within(limit, fmt.Sprintf("round %d: the box is gone", round), func() error {
			if left := processesOf("sleep 4713"); len(left) > 0 {
				return fmt.Errorf("processes %v live", left)
			}
			return h.leftovers()
		})
	}
}

// processesOf lists the live processes whose command line ends with the text, but for the runner's.
func processesOf(text string) (pids []int) {
	out, _ := exec.Command("ps", "-e", "-o", "pid=,stat=,args=").Output()
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) > 2 && f[1][0] != 'Z' && strings.HasSuffix(strings.Join(f[2:], " "), text) && (f[2] != layout.Program || f[3] != "run") {
			var pid int
			fmt.Sscan(f[0], &pid)
			pids = append(pids, pid)
		}
	}
	return pids
}
