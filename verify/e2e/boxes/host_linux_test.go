package boxes

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
	"github.com/gominimal/minhost/linux"
	"github.com/gominimal/minhost/verify/e2e/rig"
)

// Accounts of the lab.
const (
	operatorUID = 54321 // in the file of operators
	strangerUID = 54322 // nothing
	memberUID   = 54323 // in the group minhost
)

var layout = linux.DefaultLayout()

// testProgram is a copy of the test itself that everybody may run.
const testProgram = "/usr/local/lib/e2e-test"

const boxesDir = "/sys/fs/cgroup/minhost/boxes"

// host is the lab with minhost installed; installed once, by the first test.
type host struct{ testing.TB }

var install = sync.OnceValue(func() error {
	// An installation of the machine itself shines through the copy-on-write layer.
	if err := os.RemoveAll(filepath.Dir(layout.Program)); err != nil {
		return err
	}
	for file, text := range map[string]string{
		"/etc/passwd": fmt.Sprintf("e2eop:x:%d:%[1]d::/:/bin/sh\ne2estranger:x:%d:%[2]d::/:/bin/sh\ne2emember:x:%d:%[3]d::/:/bin/sh\n",
			operatorUID, strangerUID, memberUID),
		"/etc/group": fmt.Sprintf("e2eop:x:%d:\ne2estranger:x:%d:\ne2emember:x:%d:\nminhost:x:54329:e2emember\n",
			operatorUID, strangerUID, memberUID),
		// Ping sockets for everybody, as systemd has it.
		"/proc/sys/net/ipv4/ping_group_range": "0 2147483647",
	} {
		if err := appendTo(file, text); err != nil {
			return err
		}
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(testProgram, self, 0o755)
	}
	if err != nil {
		return err
	}
	out, err := exec.Command(rig.Binary(rig.Standard), "finalize-install", "--yes", "--operator", "e2eop").CombinedOutput()
	if err != nil {
		return fmt.Errorf("finalize-install: %w\n%s", err, out)
	}
	return nil
})

func appendTo(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

// newHost gives the host, and checks at the end of the test that nothing is left over.
func newHost(t testing.TB) *host {
	t.Helper()
	if err := install(); err != nil {
		t.Fatal(err)
	}
	h := &host{t}
	h.waitHelper()
	t.Cleanup(h.clean)
	return h
}

func (h *host) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	h.Cleanup(cancel)
	return ctx
}

func (h *host) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// run runs a program of the machine as root outside boxes and returns what it printed.
func (h *host) run(name string, args ...string) string {
	h.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		h.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// result is how a command ended.
type result struct {
	status         int
	stdout, stderr string
}

// minhost runs the installed program as a user.
func (h *host) minhost(uid uint32, args ...string) result {
	h.Helper()
	var out, errs bytes.Buffer
	cmd := h.command(uid, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil {
		h.Fatal(err)
	}
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	r := result{status.ExitStatus(), out.String(), errs.String()}
	if status.Signaled() {
		r.status = -int(status.Signal())
	}
	return r
}

func (h *host) command(uid uint32, args ...string) *exec.Cmd {
	cmd := exec.Command(layout.Program, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C"}
	if uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	return cmd
}

// as runs f on a thread with the credentials of a user: what it connects is the user's.
func (h *host) as(uid uint32, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if uid != 0 {
			for _, call := range [][4]uintptr{
				{unix.SYS_SETGROUPS, 0, 0, 0},
				{unix.SYS_SETRESGID, uintptr(uid), uintptr(uid), uintptr(uid)},
				{unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)},
			} {
				if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
					h.Errorf("become %d: %v", uid, errno)
					return
				}
			}
		}
		f()
	}()
	<-done
}

// dial connects to the helper as a user. The connection is closed at the end of the test.
func (h *host) dial(uid uint32) *client.Client {
	h.Helper()
	c, err := h.tryDial(uid)
	h.must(err)
	h.Cleanup(func() { c.Close() })
	return c
}

func (h *host) tryDial(uid uint32) (c *client.Client, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	h.as(uid, func() { c, err = client.Dial(ctx, layout.Socket) })
	return c, err
}

// status asks the helper as root on a connection of its own.
func (h *host) status() (s api.StatusOut, err error) {
	c, err := h.tryDial(0)
	if err != nil {
		return s, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return c.Status(ctx)
}

// leases lists all leases, as root.
func (h *host) leases() ([]api.LeaseInfo, error) {
	c, err := h.tryDial(0)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := c.List(ctx)
	return out.Leases, err
}

// waitHelper waits until the helper answers, and returns its pid.
func (h *host) waitHelper() (pid int) {
	h.Helper()
	h.within(15*time.Second, "the helper answers", func() error {
		s, err := h.status()
		pid = s.PID
		return err
	})
	return pid
}

// within fails the test when what does not become true in time.
func (h *host) within(limit time.Duration, what string, check func() error) (took time.Duration) {
	h.Helper()
	start := time.Now()
	for {
		err := check()
		took = time.Since(start)
		if err == nil {
			return took
		}
		if took > limit {
			h.Fatalf("%s: not within %v: %v", what, limit, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// settle waits for what the kernel tells asynchronously.
func (h *host) settle() { time.Sleep(300 * time.Millisecond) }
