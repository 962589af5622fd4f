package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client/clienttest"
)

// runner is minhost run in a process of its own, against a fake helper.
type runner struct {
	*exec.Cmd
	t      *testing.T
	out    *bufio.Reader
	errOut bytes.Buffer
}

// program copies the test binary to where every account may execute it.
func program(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "minhost")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	binary, err := os.ReadFile("/proc/self/exe")
	path := filepath.Join(folder, "minhost")
	if err := errors.Join(err, os.Chmod(folder, 0o755), os.WriteFile(path, binary, 0o755)); err != nil {
		t.Fatal(err)
	}
	return path
}

// startRun starts minhost run with arguments behind --socket.
func startRun(t *testing.T, h *clienttest.Helper, args ...string) *runner {
	t.Helper()
	r := &runner{t: t}
	r.Cmd = exec.Command(os.Args[0], append([]string{"run", "--socket", h.Path}, args...)...)
	r.Stderr = &r.errOut
	// No terminal, wherever the tests run: TestRunAtATerminal has one.
	r.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := r.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.out = bufio.NewReader(out)
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Process.Kill(); r.Cmd.Wait() })
	return r
}

// line reads a line of the program's output.
func (r *runner) line() string {
	r.t.Helper()
	l, err := r.out.ReadString('\n')
	if err != nil {
		r.t.Fatalf("no line: %q, %v; standard error: %s", l, err, r.errOut.String())
	}
	return strings.TrimSuffix(l, "\n")
}

// wait returns the rest of the output and the exit status; a runner that hangs fails the test.
func (r *runner) wait() (out string, status int) {
	r.t.Helper()
	alarm := time.AfterFunc(20*time.Second, func() { r.Process.Signal(syscall.SIGKILL) })
	defer alarm.Stop()
	rest, err := io.ReadAll(r.out)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = r.Cmd.Wait()
	return string(rest), r.ProcessState.ExitCode()
}

// atRest: everything that was planned is accounted for, and nothing is left.
func atRest(t *testing.T, h *clienttest.Helper) {
	t.Helper()
	if c, live := h.Counts(); live != 0 || c.Plans != c.Attaches+c.Abandons || c.Attaches != c.Teardowns {
		t.Errorf("%d leases are left, counts %+v", live, c)
	}
}

func TestRunStatusAndMessages(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte("\x00\x01\x02"), 0o755); err != nil {
		t.Fatal(err)
	}
	busy := map[string]api.Error{"Attach": &api.ProcessRefused{Message: "it holds an inet socket", Next: "close it"}}
	taken := map[string]api.Error{"Plan": &api.NameTaken{Name: "web", Message: "another box is named web", Next: "minhost ls"}}
	stuck := map[string]api.Error{"Teardown": &api.Internal{Message: "the leaf cannot be removed", Next: "minhost ls"}}
	for name, c := range map[string]struct {
		behaviour clienttest.Behaviour
		args      []string
		status    int
		out       string
		errOut    []string // parts of standard error; nothing may be there without
		plans     int
	}{
		"success":                               {args: []string{"true"}, plans: 1},
		"its status":                            {args: []string{"--", "sh", "-c", "exit 3"}, status: 3, plans: 1},
		"a signal":                              {args: []string{"sh", "-c", "kill -TERM $$"}, status: 143, plans: 1},
		"interrupted":                           {args: []string{"sh", "-c", "kill -INT $$"}, status: 130, plans: 1},
		"killed":                                {args: []string{"sh", "-c", "kill -KILL $$"}, status: 137, plans: 1},
		"its own flags":                         {args: []string{"sh", "-c", `echo "$0 $1"`, "--name", "x"}, out: "--name x\n", plans: 1},
		"its environment":                       {args: []string{"--name", "web", "sh", "-c", `echo $MINHOST_NAME $MINHOST_ADDRESS $MINHOST_HOST; env | grep -c secret`}, out: "web 127.0.64.1 127.0.64.254\n0\n", status: 1, plans: 1},
		"a group of its own, nothing inherited": {args: []string{"sh", "-c", `ls /proc/$$/fd; ps -o pgid= -p $$ | tr -d ' ' | grep -qx $$`}, out: "0\n1\n2\n", plans: 1},
		"not found":                             {args: []string{"no-such-program"}, status: 127, errOut: []string{"no-such-program: there is no such program in PATH"}},
		"not executable":                        {args: []string{"/etc/passwd"}, status: 126, errOut: []string{"it is not executable"}},
		"not a program":                         {args: []string{garbage}, status: 126, errOut: []string{"exec format error"}, plans: 1},
		"no program":                            {status: 125, errOut: []string{"requires at least 1 arg", "next: minhost run --help"}},
		"unknown flag":                          {args: []string{"--frobnicate", "true"}, status: 125, errOut: []string{"unknown flag: --frobnicate"}},
		"a bad rule":                            {args: []string{"--allow", "example.com:443", "true"}, status: 125, errOut: []string{"--allow example.com:443: "}},
		"the name is taken":                     {behaviour: clienttest.Behaviour{Fail: taken}, args: []string{"--name", "web", "true"}, status: 125, errOut: []string{"another box is named web", "next: minhost ls"}},
		"attach is refused":                     {behaviour: clienttest.Behaviour{Fail: busy}, args: []string{"sh", "-c", "echo ran"}, status: 125, errOut: []string{"it holds an inet socket", "next: close it"}, plans: 1},
		"a namespace is wanted":                 {behaviour: clienttest.Behaviour{Net: api.NetPlan{Isolate: true}}, args: []string{"sh", "-c", "echo ran"}, status: 125, errOut: []string{"wants a network namespace"}, plans: 1},
		"not confined, and says so":             {behaviour: clienttest.Behaviour{Enforcement: api.EnforcementNone}, args: []string{"--egress", "deny", "--allow-unenforced", "echo", "ran"}, out: "ran\n", errOut: []string{"is not confined on this host: the fake says so"}, plans: 1},
		"open on a host without rules":          {behaviour: clienttest.Behaviour{Enforcement: api.EnforcementNone}, args: []string{"true"}, plans: 1},
		"left over":                             {behaviour: clienttest.Behaviour{Fail: stuck}, args: []string{"sh", "-c", "exit 4"}, status: 4, errOut: []string{"box lease1 may be left over: the leaf cannot be removed", "next: minhost ls"}, plans: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := clienttest.Start(t, c.behaviour)
			r := startRun(t, h, c.args...)
			out, status := r.wait()
			if status != c.status || out != c.out {
				t.Errorf("status %d, output %q; want %d, %q", status, out, c.status, c.out)
			}
			got := r.errOut.String()
			if len(c.errOut) == 0 && got != "" {
				t.Errorf("standard error %q", got)
			}
			for _, part := range c.errOut {
				if !strings.Contains(got, part) {
					t.Errorf("standard error %q lacks %q", got, part)
				}
			}
			if counts, _ := h.Counts(); counts.Plans != c.plans {
				t.Errorf("%d plans, want %d", counts.Plans, c.plans)
			}
			if c.behaviour.Fail["Teardown"] == nil {
				atRest(t, h)
			}
			// Not left to the end of the connection, which the helper sees some time later.
			if last := h.Calls(); c.plans > 0 && last[len(last)-1].Method != "Abandon" && last[len(last)-1].Method != "Teardown" {
				t.Errorf("the last call is %s", last[len(last)-1].Method)
			}
		})
	}
}

func TestRunTellsRefusals(t *testing.T) {
	h := clienttest.Start(t, clienttest.Behaviour{Refusals: []api.Refusal{
		{Kind: "address", Box: "web", Protocol: "tcp", Destination: "127.0.0.1", Port: 8080, Count: 2},
		{Kind: "zone", Box: "web", Name: "api.min.internal"},
	}})
	r := startRun(t, h, "--name", "web", "--egress", "deny", "sh", "-c", "exit 7")
	_, status := r.wait()
	want := "minhost: the command could not reach 127.0.0.1:8080: the egress rules of box web do not allow it (2 times)\n" +
		"minhost: box web may not reach box api: api's ingress\n"
	if got := r.errOut.String(); status != 7 || got != want {
		t.Errorf("status %d, standard error %q; want %q", status, got, want)
	}
	in := h.Calls()[0].In.(*api.PlanIn)
	if in.Policy.Egress != api.EgressDeny || !in.EndWithConnection || in.Name != "web" {
		t.Errorf("planned %+v", in)
	}
	if attach := h.Calls()[1]; attach.FDs != 1 || attach.In.(*api.AttachIn).PID != 0 {
		t.Errorf("attached by %+v, want a pidfd", attach)
	}
}

func TestRunWithoutHelper(t *testing.T) {
	h := clienttest.Start(t, clienttest.Behaviour{})
	h.Stop()
	r := startRun(t, h, "sh", "-c", "echo ran")
	if out, status := r.wait(); status != statusRunFailed || out != "" {
		t.Errorf("status %d, output %q", status, out)
	}
	if got := r.errOut.String(); !strings.Contains(got, "there is no helper at") || !strings.Contains(got, "next: minhost finalize-install") {
		t.Errorf("standard error %q", got)
	}
}

// A closed standard error (run ... 2>&1 | head) must not end run before the box is ended.
func TestRunWithClosedStandardError(t *testing.T) {
	h := clienttest.Start(t, clienttest.Behaviour{Refusals: []api.Refusal{{Box: "web", Destination: "192.0.2.7"}}})
	cmd := exec.Command(os.Args[0], "run", "--socket", h.Path, "sh", "-c", "exit 6")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	cmd.Stderr = w
	_ = cmd.Run()
	w.Close()
	if status := cmd.ProcessState.ExitCode(); status != 6 {
		t.Errorf("status %d (%v)", status, cmd.ProcessState)
	}
	atRest(t, h)
}

func TestRunNeedsNoRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("not root: every other test of run shows it")
	}
	h := clienttest.Start(t, clienttest.Behaviour{})
	cmd := exec.Command(program(t), "run", "--socket", h.Path, "--name", "web", "--egress", "deny", "--", "id", "-u")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "65534\n" {
		t.Errorf("%q, %v", out, err)
	}
	atRest(t, h)
}
