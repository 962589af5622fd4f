package standalone

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNotes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := takeLock(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.release()
	for _, n := range []note{{"helper", 100, 1 << 60}, {"answerer", 4194304, 2}, {"helper", 7, 3}} {
		slot := map[string]int{"helper": 0, "answerer": 1}[n.role]
		if err := l.write(slot, n); err != nil {
			t.Fatal(err)
		}
	}
	want := []note{{"helper", 7, 3}, {"answerer", 4194304, 2}}
	if got := l.notes(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, bad := range []string{"helper x 3\n", "helper 1 3\n", "helper 5\n", "helper 5 -1\n", "\x00\x00"} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := l.notes(); len(got) != 0 {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}

// TestFind: a note finds its process, and no other that has the same number.
func TestFind(t *testing.T) {
	// A name with what a careless reader of /proc/PID/stat trips over.
	dir := t.TempDir()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "a) R 1 (b")
	if err := os.Symlink(sleep, name); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	start, err := startTime(cmd.Process.Pid)
	if err != nil || start == 0 {
		t.Fatalf("%d, %v", start, err)
	}
	if p, err := (note{"helper", cmd.Process.Pid, start + 1}).find(); p != nil || err != nil {
		t.Errorf("found by number alone: %v, %v", p, err)
	}
	p, err := note{"helper", cmd.Process.Pid, start}.find()
	if p == nil || err != nil {
		t.Fatalf("not found: %v", err)
	}
	defer p.close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := p.end(ctx, time.Second); err != nil {
		t.Error(err)
	}
	cmd.Wait()
	if p, err := (note{"helper", cmd.Process.Pid, start}).find(); p != nil || err != nil {
		t.Errorf("found after its end: %v, %v", p, err)
	}
}

func TestRunningWithoutFile(t *testing.T) {
	if pid, ok, err := Running(filepath.Join(t.TempDir(), "lock")); pid != 0 || ok || err != nil {
		t.Errorf("%d, %v, %v", pid, ok, err)
	}
}

func TestExecListenRefuses(t *testing.T) {
	for _, args := range [][]string{
		{}, {"--names=a"}, {"--", "/bin/true"}, {"--names=a", "--uid=5", "--", "/bin/true"},
		{"--names=a", "--gid=5", "--", "/bin/true"}, {"--names=a", "--uid=-1", "--gid=-1", "--", "/bin/true"}, {"--what"},
	} {
		if err := ExecListen(args); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

// TestHeldByNobodySeen: where the holder has no number here, nobody is told to kill 0, the own process group.
func TestHeldByNobodySeen(t *testing.T) {
	if text := (&Held{Path: "/run/lock"}).Error(); strings.Contains(text, "kill") || !strings.Contains(text, "lslocks") {
		t.Error(text)
	}
	if text := (&Held{Path: "/run/lock", PID: 7}).Error(); !strings.Contains(text, "kill 7") {
		t.Error(text)
	}
}
