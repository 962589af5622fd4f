package boxes

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/netlab"
)

// runBox runs a shell line in a box as the operator. The lease is gone when run returns.
func (h *host) runBox(line string, flags ...string) result {
	h.Helper()
	args := append(append([]string{"run"}, flags...), "--", "/bin/sh", "-c", line)
	r := h.minhost(operatorUID, args...)
	if err := h.leftovers(); err != nil {
		h.Errorf("run returned, left over: %v", err)
	}
	return r
}

// TestRunStatus: run ends as its program does, or with a status of its own that says why.
func TestRunStatus(t *testing.T) {
	h := newHost(t)
	for line, want := range map[string]int{"exit 0": 0, "exit 7": 7, "exit 255": 255, "kill -TERM $$": 143, "kill -KILL $$": 137, "kill -SEGV $$": 139} {
		if r := h.runBox(line); r.status != want {
			t.Errorf("%s: status %d, want %d; %s", line, r.status, want, r.stderr)
		}
	}
	h.must(os.WriteFile("/run/e2e-text", []byte("no program"), 0o755))
	h.must(os.WriteFile("/run/e2e-closed", []byte("#!/bin/sh\n"), 0o700))
	taken := h.box("taken", denyPolicy())
	for _, c := range []struct {
		status int
		says   string
		args   []string
	}{
		{126, "not executable", []string{"--", "/etc/passwd"}},
		{126, "folder", []string{"--", "/etc"}},
		{126, "exec format error", []string{"--", "/run/e2e-text"}},
		{126, "permission denied", []string{"--", "/run/e2e-closed"}},
		{127, "no such program", []string{"--", "no-such-program"}},
		{127, "no such file", []string{"--", "/no/such/program"}},
		{125, "name", []string{"--name", "bad_name", "--", "true"}},
		{125, "taken", []string{"--name", "taken", "--", "true"}},
		{125, "--egress", []string{"--egress", "maybe", "--", "true"}},
		{125, "--allow", []string{"--allow", "nowhere", "--", "true"}},
		{125, "arg", []string{}},
	} {
		r := h.minhost(operatorUID, append([]string{"run"}, c.args...)...)
		if r.status != c.status || !strings.Contains(r.stderr, c.says) || strings.Contains(r.stderr, "panic") || r.stderr == "" {
			t.Errorf("run %v: status %d, %q; want %d and %q", c.args, r.status, r.stderr, c.status, c.says)
		}
	}
	if r := h.minhost(strangerUID, "run", "--", "true"); r.status != 125 || !strings.Contains(r.stderr, "not an operator") {
		t.Errorf("a stranger: status %d, %q", r.status, r.stderr)
	}
	taken.end()
}

// TestRunAttachFails: a program whose attach fails has never run.
func TestRunAttachFails(t *testing.T) {
	h := newHost(t)
	h.run("mount", "-t", "tmpfs", "-o", "ro", "none", layout.Leases) // the helper cannot record
	r := h.minhost(operatorUID, "run", "--name", "held", "--", "/bin/sh", "-c", "echo ran; touch /tmp/e2e-ran")
	h.run("umount", layout.Leases)
	if r.status != 125 || r.stdout != "" || r.stderr == "" {
		t.Errorf("status %d, %q, %q; want 125 and why", r.status, r.stdout, r.stderr)
	}
	if os.Remove("/tmp/e2e-ran") == nil {
		t.Error("the program ran")
	}
	if err := h.leftovers(); err != nil {
		t.Errorf("left over: %v", err)
	}
	if r := h.runBox("echo ran", "--name", "held"); r.stdout != "ran\n" {
		t.Errorf("afterwards: status %d, %q, %q", r.status, r.stdout, r.stderr)
	}
}

// TestRunEnvironment: what the program finds, and what it does not.
func TestRunEnvironment(t *testing.T) {
	h := newHost(t)
	for flag, leaf := range map[string]string{"--no-strict": "/minhost/boxes/", "--egress=deny": "0::/\n"} { // a strict program sees no other cgroup
		r := h.runBox("env; id -u; cat /proc/self/cgroup; ls -l /proc/self/fd", "--name", "envious", "--egress", "deny", flag)
		for _, want := range []string{"MINHOST_NAME=envious\n", "MINHOST_ADDRESS=127.0.64.", "MINHOST_HOST=127.0.64.254\n", fmt.Sprintf("\n%d\n", operatorUID), leaf} {
			if !strings.Contains(r.stdout, want) {
				t.Errorf("%s: output lacks %q:\n%s", flag, want, r.stdout)
			}
		}
		if strings.Contains(strings.ToLower(r.stdout), "secret") || strings.Contains(r.stdout, "socket:") {
			t.Errorf("%s: the program has a secret or a socket:\n%s", flag, r.stdout)
		}
	}
	// The address of a localhost of its own is nobody's to find.
	if r := h.runBox("env"); strings.Contains(r.stdout, "MINHOST_NAME") || !strings.Contains(r.stdout, "MINHOST_ADDRESS=127.65.") {
		t.Errorf("a box without a name has:\n%s", r.stdout)
	}
	if r := h.runBox("env", "--shared-localhost"); strings.Contains(r.stdout, "MINHOST_NAME") || strings.Contains(r.stdout, "MINHOST_ADDRESS") {
		t.Errorf("a box without a name or a localhost of its own has:\n%s", r.stdout)
	}
	cmd := h.command(operatorUID, "run", "--", "/bin/cat")
	cmd.Stdin = strings.NewReader("through")
	out, err := cmd.Output()
	if err != nil || string(out) != "through" {
		t.Errorf("standard input: %q, %v", out, err)
	}
}

// TestRunSignals: signals for run are the program's.
func TestRunSignals(t *testing.T) {
	h := newHost(t)
	for name, sig := range map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "QUIT": syscall.SIGQUIT} {
		p := h.running("trap 'exit 42' "+name+"; echo up; while :; do sleep 0.05; done", "--name", "sig")
		h.must(p.cmd.Process.Signal(sig))
		if status := p.wait(); status != 42 {
			t.Errorf("SIG%s: status %d, want the program's 42", name, status)
		}
		p = h.running("echo up; exec sleep 4717", "--name", "sig")
		h.must(p.cmd.Process.Signal(sig))
		if status := p.wait(); status != 128+int(sig) {
			t.Errorf("SIG%s on a program without a handler: status %d, want %d", name, status, 128+int(sig))
		}
	}
}

// TestRunChildren: what the program left behind ends with the box; what it was is over when run
// returns.
func TestRunChildren(t *testing.T) {
	h := newHost(t)
	r := h.runBox("setsid sleep 4718 & (setsid sleep 4718 &); nohup sleep 4718 >/dev/null 2>&1 & sleep 0.1", "--name", "parent")
	if left := processesOf("sleep 4718"); r.status != 0 || len(left) > 0 {
		t.Errorf("status %d, processes %v live", r.status, left)
	}
}

// TestRunRefusals: what was refused is said in the right sentence.
func TestRunRefusals(t *testing.T) {
	h := newHost(t)
	netlab.Echo(h, "tcp", "127.0.0.1:8098", 0)
	api := h.box("api", denyPolicy())
	api.serve("tcp", "0.0.0.0:3600")
	for _, c := range []struct {
		line, says string
		flags      []string
	}{
		{"curl -sS http://127.0.0.1:8098/; true", "minhost: the command could not reach 127.0.0.1:8098: the egress rules of box web do not allow it", []string{"--egress", "deny"}},
		{"curl -sS http://127.0.0.1:8098/; true", "minhost: the command could not reach 127.0.0.1:8098: the egress rules of box web do not allow it", []string{"--allow", "192.0.2.0/24:443"}},
		{"curl -sS 'http://[::1]:8098/'; true", "minhost: the command could not reach [::1]:8098: the egress rules of box web do not allow it", []string{"--egress", "deny"}},
		{"echo x > /dev/udp/127.0.0.1/8098", "minhost: the command could not reach 127.0.0.1:8098/udp: the egress rules of box web do not allow it", []string{"--egress", "deny"}},
		{"ping -c1 -W1 127.0.0.1; true", "minhost: the command could not reach 127.0.0.1/icmp: the egress rules of box web do not allow it", []string{"--egress", "deny"}},
		{"dig +tries=1 @127.0.0.53 example.com", "minhost: the command could not look up example.com: box web may look up names of min.internal only", []string{"--egress", "deny"}},
		// Over TCP the answerer cannot tell the box: the helper finds it by the flow.
		{"dig +tcp +tries=1 @127.0.0.53 example.net", "minhost: the command could not look up example.net: box web may look up names of min.internal only", []string{"--egress", "deny"}},
		{"curl -sS http://" + api.plan.Address + ":3600/; true", "minhost: box web may not reach box api: api's ingress", []string{"--egress", "deny"}},
		{"curl -sS http://" + api.plan.Address + ":3600/; true", "minhost: box web may not reach box api: api's ingress", []string{"--egress", "open"}},
	} {
		c.line = strings.ReplaceAll(c.line, "echo x > /dev/udp/127.0.0.1/8098", "python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b\"x\", (\"127.0.0.1\", 8098))'")
		args := append(append([]string{"run", "--name", "web"}, c.flags...), "--", "/bin/sh", "-c", c.line)
		r := h.minhost(operatorUID, args...)
		if !strings.Contains(r.stderr, c.says) || strings.Count(r.stderr, "minhost: ") != 1 {
			t.Errorf("%v, %s: %q; want the one sentence %q", c.flags, c.line, r.stderr, c.says)
		}
	}
	if r := h.minhost(operatorUID, "run", "--name", "web", "--allow", "127.0.0.1/32:8098/tcp", "--", "/bin/sh", "-c", "exec 3<>/dev/null; true"); strings.Contains(r.stderr, "minhost:") {
		t.Errorf("nothing was refused: %q", r.stderr)
	}
}

// TestRunHelperRestarts: a box of run outlives the helper, and run goes on with the next one.
func TestRunHelperRestarts(t *testing.T) {
	h := newHost(t)
	p := h.running("trap 'exit 9' TERM; echo up; while :; do sleep 0.05; done", "--name", "adopted")
	for range 2 {
		h.killHelper()
		h.waitHelper()
	}
	h.within(9*time.Second, "the box is there", func() error {
		leases, err := h.leases()
		if err == nil && (len(leases) != 1 || leases[0].Name != "adopted") {
			err = fmt.Errorf("leases %+v", leases)
		}
		return err
	})
	time.Sleep(11 * time.Second) // a box that nobody adopted would be ended after ten
	h.must(p.cmd.Process.Signal(syscall.SIGTERM))
	if status := p.wait(); status != 9 {
		t.Errorf("status %d, want the program's 9: %s", status, p.stderr.String())
	}
	if err := h.leftovers(); err != nil {
		t.Errorf("left over: %v", err)
	}
}

// running is a run whose program has said "up".
type running struct {
	h      *host
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

func (h *host) running(line string, flags ...string) *running {
	h.Helper()
	p := &running{h: h, cmd: h.command(operatorUID, append(append([]string{"run"}, flags...), "--", "/bin/sh", "-c", line)...)}
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	h.must(err)
	h.must(p.cmd.Start())
	h.Cleanup(func() { p.cmd.Process.Kill(); p.cmd.Wait() })
	if n, _ := out.Read(make([]byte, 3)); n != 3 {
		h.Fatalf("the program did not start: %v", p.wait())
	}
	return p
}

func (p *running) wait() int {
	p.h.Helper()
	timer := time.AfterFunc(20*time.Second, func() { p.cmd.Process.Kill() })
	defer timer.Stop()
	p.cmd.Wait()
	status := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal()) // by interrupt: the shell's $? is the same
	}
	return status.ExitStatus()
}
