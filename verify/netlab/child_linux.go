package netlab

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

const childEnv = "NETLAB_CHILD"

// NoLeaf as Spawn.Leaf starts a child where the test itself is.
const NoLeaf = -1

// Children are functions of a test binary that it can run again as a process: they get the arguments
// and return the exit status. Standard output is the answer.
type Children map[string]func(args []string) int

// runChild finds name among those of the test, then among the built-in ones.
func runChild(name string, args []string, children []Children) int {
	for _, c := range append(children, builtin()) {
		if run, ok := c[name]; ok {
			return run(args)
		}
	}
	fmt.Fprintf(os.Stderr, "netlab: no child %q was given to Main\n", name)
	return 2
}

func builtin() Children {
	return Children{"netlab-dial": dialChild, "netlab-serve": serveChild, "netlab-sleep": sleepChild}
}

// sleepChild says that it lives and waits for the end of its standard input.
func sleepChild([]string) int {
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	return 0
}

// Spawn says where and how a child starts.
type Spawn struct {
	// Leaf is the open directory of a cgroup that the child is born in, or NoLeaf.
	Leaf int
	// Cloneflags are namespaces of its own (syscall.CLONE_NEWNET, ...).
	Cloneflags uintptr
	// UID is the user (and group) it runs as, 0 for root.
	UID uint32
}

// Proc is a running child. It is killed when the test ends.
type Proc struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// Start runs a child; its standard input stays open until Stop.
func Start(t testing.TB, s Spawn, name string, args ...string) *Proc {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), childEnv+"="+name)
	cmd.Stderr = os.Stderr
	attr := &syscall.SysProcAttr{Cloneflags: s.Cloneflags}
	if s.Leaf != NoLeaf {
		attr.UseCgroupFD, attr.CgroupFD = true, s.Leaf
	}
	if s.UID != 0 {
		attr.Credential = &syscall.Credential{Uid: s.UID, Gid: s.UID}
	}
	cmd.SysProcAttr = attr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("child %s: %v", name, err)
	}
	p := &Proc{t: t, cmd: cmd, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return p
}

// PID of the child.
func (p *Proc) PID() int { return p.cmd.Process.Pid }

// Line reads one line of its output; the test fails when there is none within ten seconds.
func (p *Proc) Line() string {
	p.t.Helper()
	timer := time.AfterFunc(Patience(10*time.Second), func() { p.cmd.Process.Kill() })
	defer timer.Stop()
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatalf("child %d: no line: %v", p.PID(), err)
	}
	return strings.TrimSuffix(line, "\n")
}

// Kill ends the child by SIGKILL and reaps it.
func (p *Proc) Kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// Stop closes the child's input, waits for its end and returns the rest of its output. The test fails
// when it does not end within ten seconds or with another status than 0.
func (p *Proc) Stop() string {
	p.t.Helper()
	p.in.Close()
	timer := time.AfterFunc(Patience(10*time.Second), func() { p.cmd.Process.Kill() })
	defer timer.Stop()
	rest, _ := io.ReadAll(p.out)
	if err := p.cmd.Wait(); err != nil {
		p.t.Fatalf("child %d: %v, output %q", p.PID(), err, rest)
	}
	return string(rest)
}

// InLeaf runs a child in a leaf (or NoLeaf) to its end and returns its output.
func InLeaf(t testing.TB, leaf int, name string, args ...string) string {
	t.Helper()
	return Start(t, Spawn{Leaf: leaf}, name, args...).Stop()
}

// Say writes one line to its standard input.
func (p *Proc) Say(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatalf("child %d: %v", p.PID(), err)
	}
}
