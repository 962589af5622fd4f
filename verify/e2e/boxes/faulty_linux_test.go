package boxes

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

// faultyProgram asks the test before each change of the host (cmd/minhost, tag faultpoints).
const faultyProgram = "minhost-faulty"

// faulty is a helper under the hand of the test, in the place of the supervisor's: the supervisor is
// stopped, and its socket lies aside until the end of the test.
type faulty struct {
	*host
	socket  *os.File // listening, handed to each helper
	cmd     *exec.Cmd
	ended   chan struct{}
	log     string
	visited map[string]bool

	mu     sync.Mutex
	points []string // since arm
	decide func(point string) string
}

// newFaulty kills the helper and starts the faulty one over what it left.
func newFaulty(t *testing.T) *faulty {
	t.Helper()
	h := newHost(t)
	f := &faulty{host: h, log: filepath.Join(t.TempDir(), "log")}
	supervisor := rig.Only(t, "supervise")
	h.must(syscall.Kill(supervisor.PID, syscall.SIGSTOP))
	aside := layout.Socket + ".aside"
	h.must(os.Rename(layout.Socket, aside))
	t.Cleanup(func() {
		f.kill()
		h.must(os.Rename(aside, layout.Socket))
		h.must(syscall.Kill(supervisor.PID, syscall.SIGCONT))
		h.waitHelper()
	})
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: layout.Socket, Net: "unix"})
	h.must(err)
	h.must(os.Chmod(layout.Socket, 0o666))
	f.socket, err = l.File()
	h.must(err)
	t.Cleanup(func() { f.socket.Close() })
	l.SetUnlinkOnClose(false)
	h.must(l.Close())
	asker, err := net.Listen("unix", filepath.Join(layout.Run, "fault.sock"))
	h.must(err)
	t.Cleanup(func() { asker.Close() })
	go f.answer(asker)
	h.killHelper()
	f.start()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(h.run("tail", "-n", "30", f.log))
		}
	})
	return f
}

// start starts a helper and waits until it answers.
func (f *faulty) start() {
	f.Helper()
	out, err := os.OpenFile(f.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	f.must(err)
	defer out.Close()
	program := rig.Binary(faultyProgram)
	f.cmd = exec.Command(program, "exec-listen", "--names=helper", "--", program, "helper")
	f.cmd.Env, f.cmd.Dir = []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin"}, "/"
	f.cmd.ExtraFiles, f.cmd.Stdout, f.cmd.Stderr = []*os.File{f.socket}, out, out
	f.must(f.cmd.Start())
	ended, cmd := make(chan struct{}), f.cmd
	f.ended = ended
	go func() {
		cmd.Wait()
		close(ended)
	}()
	f.waitHelper()
}

// dead tells whether the helper has ended, and gives it some time to.
func (f *faulty) dead(within time.Duration) bool {
	select {
	case <-f.ended:
		return true
	case <-time.After(within):
		return false
	}
}

func (f *faulty) kill() {
	f.cmd.Process.Kill()
	<-f.ended
}

// arm has each change from now on decided: "exit", "fail" or "".
func (f *faulty) arm(decide func(point string) string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.points, f.decide = nil, decide
}

// disarm lets everything through, and returns the points since arm.
func (f *faulty) disarm() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.decide = nil
	return f.points
}

func (f *faulty) answer(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			point, err := bufio.NewReader(c).ReadString('\n')
			if err != nil {
				return
			}
			fmt.Fprintln(c, f.at(strings.TrimSpace(point)))
		}()
	}
}

// behindReplies are what the helper logs when all of a call is done but its reply.
var behindReplies = []string{"log planned", "log abandoned", "log attached", "log joined", "log updated", "log listening", "log ended"}

// ids are what differs from run to run: lease ids, process ids, which descriptor a path hides.
var ids = regexp.MustCompile(`\b[0-9a-f]{17}\b|\b[0-9]+\b`)

// at numbers the points that are called the same, and has the test decide, without the lock: it may take its
// time.
func (f *faulty) at(point string) string {
	point = ids.ReplaceAllString(point, "X")
	f.mu.Lock()
	decide := f.decide
	leftOver := strings.HasPrefix(point, "remove ") && strings.HasSuffix(point, ".minhost-new") // of a write that a kill broke off
	if decide == nil || leftOver || strings.HasPrefix(point, "log ") && !slices.Contains(behindReplies, point) {
		f.mu.Unlock()
		return ""
	}
	n := 1
	for _, p := range f.points {
		if strings.HasPrefix(p, point+" #") {
			n++
		}
	}
	point = fmt.Sprintf("%s #%d", point, n)
	f.points = append(f.points, point)
	f.mu.Unlock()
	return decide(point)
}

// only decides about one point.
func only(point, what string) func(string) string {
	return func(p string) string {
		if p == point {
			return what
		}
		return ""
	}
}

// fresh says whether a point is to be visited: the steps of replacing a file are the same wherever a file is
// replaced, and visited once a file. MINHOST_SOAK visits all.
func (f *faulty) fresh(point string) bool {
	file := strings.Contains(point, ".minhost-new") || strings.HasPrefix(point, "rename ") || strings.HasPrefix(point, "sync ")
	if !file || os.Getenv("MINHOST_SOAK") != "" {
		return true
	}
	if f.visited == nil {
		f.visited = map[string]bool{}
	}
	seen := f.visited[point]
	f.visited[point] = true
	return !seen
}
