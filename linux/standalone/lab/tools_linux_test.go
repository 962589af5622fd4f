package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/linux/standalone"
)

// setup installs the stand-in, and takes everything away at the end of the test.
func setup(t *testing.T) standalone.Config {
	t.Helper()
	c := config()
	install(t, c.Program)
	if err := os.MkdirAll(seen, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(seen, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			b, _ := os.ReadFile(c.Log)
			t.Logf("log:\n%.4000s", b)
		}
		if err := standalone.Stop(context.Background(), c); err != nil {
			t.Errorf("stop: %v", err)
		}
		os.RemoveAll(seen)
		os.RemoveAll(c.Run)
	})
	return c
}

// install puts a fresh copy of this binary at path by rename, as the installer does.
func install(t *testing.T, path string) {
	t.Helper()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, self); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, c standalone.Config) int {
	t.Helper()
	pid, err := standalone.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func want(t *testing.T, what string) {
	t.Helper()
	if err := os.WriteFile(seen+"/"+what, nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// dial returns the pid that answers there.
func dial(network, addr string) (int, error) {
	conn, err := net.DialTimeout(network, addr, time.Second)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(2 * time.Second))
	if network == "udp" {
		if _, err := conn.Write([]byte("?")); err != nil {
			return 0, err
		}
	}
	buf := make([]byte, 32)
	n, err := conn.Read(buf)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(buf[:n])))
}

func helperPID(t *testing.T, c standalone.Config) int {
	t.Helper()
	pid, err := dial("unix", c.Socket)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func answererPID(t *testing.T) int {
	t.Helper()
	pid, err := dial("udp", "127.0.0.1:15353")
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func sightOf(t *testing.T, role string, pid int) sight {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("%s/%s.%d", seen, role, pid))
	if err != nil {
		t.Fatal(err)
	}
	var s sight
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// alive is false for a zombie too: inside the lab nobody else reaps.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	return !strings.HasPrefix(string(b[strings.LastIndexByte(string(b), ')')+1:]), " Z")
}

// until waits at most 10 s for the condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within 10 s: %s", what)
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "killed process ends", func() bool { return !alive(pid) })
}

// nothingRuns fails when any process of the stand-in is left, whatever its pid.
func nothingRuns(t *testing.T, c standalone.Config) {
	t.Helper()
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(d))
		exe, _ := os.Readlink(d + "/exe")
		if strings.HasPrefix(exe, c.Program) && alive(pid) {
			args, _ := os.ReadFile(d + "/cmdline")
			t.Errorf("left over: %d %q", pid, args)
		}
	}
	if _, err := os.Lstat(c.Socket); err == nil {
		t.Errorf("left over: %s", c.Socket)
	}
	for _, addr := range []string{"127.0.0.1:15353", "127.0.0.1:15354"} {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Errorf("port still taken: %v", err)
			continue
		}
		l.Close()
	}
}
