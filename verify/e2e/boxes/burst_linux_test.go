package boxes

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/client"
)

// crowded is more than the connections that an account may have which hold no lease.
const crowded = 40

// TestRunWaitsForItsTurn: an account whose connections are used up starts nothing until one is closed, and then
// it does, without an error.
func TestRunWaitsForItsTurn(t *testing.T) {
	h := newHost(t)
	var idle []*client.Client
	for {
		c := h.dial(operatorUID)
		if _, err := c.Status(h.ctx()); err != nil {
			h.wants("the last connection", err, "TooManyConnections")
			break
		}
		idle = append(idle, c)
	}
	done := make(chan result, 1)
	go func() { done <- h.minhost(operatorUID, "run", "--", "/bin/echo", "ran") }()
	select {
	case r := <-done:
		t.Fatalf("it did not wait: %+v", r)
	case <-time.After(500 * time.Millisecond):
	}
	for _, c := range idle {
		c.Close()
	}
	if r := <-done; r.status != 0 || r.stdout != "ran\n" || r.stderr != "" {
		t.Errorf("then: %+v", r)
	}
}

// TestManyRunsAtOnce: who starts more than that at once starts all of them.
func TestManyRunsAtOnce(t *testing.T) {
	h := newHost(t)
	var work sync.WaitGroup
	for i := range crowded {
		work.Go(func() {
			if r := h.minhost(operatorUID, "run", "--name", fmt.Sprint("many-", i), "--", "/bin/echo", "ran"); r.status != 0 || r.stdout != "ran\n" || r.stderr != "" {
				t.Errorf("run %d: %+v", i, r)
			}
		})
	}
	work.Wait()
}

// TestManyRunsStay with a helper that is restarted: all look for it in the same moment.
func TestManyRunsStay(t *testing.T) {
	h := newHost(t)
	var all []*running
	for i := range crowded {
		all = append(all, h.running("trap 'exit 9' TERM; echo up; while :; do sleep 0.2; done", "--name", fmt.Sprint("many-", i)))
	}
	h.killHelper()
	h.waitHelper()
	time.Sleep(11 * time.Second) // a box that nobody adopted would be ended after ten
	leases, err := h.leases()
	h.must(err)
	if len(leases) != crowded {
		t.Errorf("%d of %d boxes live", len(leases), crowded)
	}
	for _, p := range all {
		p.cmd.Process.Signal(syscall.SIGTERM)
	}
	for i, p := range all {
		if status := p.wait(); status != 9 {
			t.Errorf("run %d: status %d: %s", i, status, strings.TrimSpace(p.stderr.String()))
		}
	}
}

// TestManyProgramsOfOneBox: each that joins takes one connection, so that as many run as an account may have.
func TestManyProgramsOfOneBox(t *testing.T) {
	h := newHost(t)
	state, err := os.MkdirTemp("", "e2e-state") // not below a folder of root's
	h.must(err)
	h.Cleanup(func() { os.RemoveAll(state) })
	h.must(os.Chown(state, operatorUID, operatorUID))
	start := func(args ...string) *exec.Cmd {
		cmd := h.command(operatorUID, append([]string{"run"}, args...)...)
		cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+state)
		out, err := cmd.StdoutPipe()
		h.must(err)
		h.must(cmd.Start())
		h.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		if n, _ := out.Read(make([]byte, 3)); n != 3 {
			t.Errorf("%v did not start", args)
		}
		return cmd
	}
	start("--name", "shared", "--", "/bin/sh", "-c", "echo up; exec sleep 4719")
	for range 30 {
		start("--join", "shared", "--", "/bin/sh", "-c", "echo up; exec sleep 4719")
	}
}
