package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/client/clienttest"
)

// busy tells its pid and runs until a trap ends it; no command in the loop, so that it can stop. The limit
// ends it when the test is killed.
const busy = `; ulimit -t 60; echo $$; while :; do :; done`

func TestRunPassesSignals(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{
		"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT,
		"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "WINCH": syscall.SIGWINCH, "CONT": syscall.SIGCONT,
	} {
		t.Run(name, func(t *testing.T) {
			h := clienttest.Start(t, clienttest.Behaviour{})
			r := startRun(t, h, "sh", "-c", "trap 'echo got; exit 42' "+name+busy)
			r.line()
			r.Process.Signal(sig)
			if out, status := r.wait(); out != "got\n" || status != 42 {
				t.Errorf("output %q, status %d", out, status)
			}
			atRest(t, h)
		})
	}
}

func TestRunEndsBySignal(t *testing.T) {
	h := clienttest.Start(t, clienttest.Behaviour{})
	r := startRun(t, h, "sh", "-c", "true"+busy)
	r.line()
	r.Process.Signal(syscall.SIGTERM)
	if _, status := r.wait(); status != 143 {
		t.Errorf("status %d", status)
	}
	atRest(t, h)
}

func TestRunStopsAndContinuesTheProgram(t *testing.T) {
	h := clienttest.Start(t, clienttest.Behaviour{})
	r := startRun(t, h, "sh", "-c", "trap 'exit 5' USR1"+busy)
	pid, err := strconv.Atoi(r.line())
	if err != nil {
		t.Fatal(err)
	}
	r.Process.Signal(syscall.SIGTSTP)
	eventually(t, "the program stops", func() bool { return state(pid) == "T" })
	r.Process.Signal(syscall.SIGCONT)
	eventually(t, "the program goes on", func() bool { return state(pid) == "R" })
	r.Process.Signal(syscall.SIGUSR1)
	if _, status := r.wait(); status != 5 {
		t.Errorf("status %d", status)
	}
}

// What run was started to ignore stays ignored, in the program too (nohup).
func TestRunKeepsIgnoredSignals(t *testing.T) {
	h := clienttest.Start(t, clienttest.Behaviour{})
	r := startRun(t, h, "sh", "-c", `trap '' HUP; exec "$0" run --socket "$1" sh -c "trap 'exit 5' USR1`+strings.ReplaceAll(busy, "$", `\$`)+`"`,
		os.Args[0], h.Path)
	pid, err := strconv.Atoi(r.line())
	if err != nil {
		t.Fatal(err)
	}
	// Whoever started the tests may ignore signals too.
	if got, want := ignored(t, strconv.Itoa(pid)), ignored(t, "self")|1<<(syscall.SIGHUP-1); got != want {
		t.Errorf("the program ignores %#x, want %#x", got, want)
	}
	syscall.Kill(pid, syscall.SIGUSR1)
	if _, status := r.wait(); status != 5 {
		t.Errorf("status %d", status)
	}
}

// ignored is the mask of signals that a process ignores.
func ignored(t *testing.T, pid string) uint64 {
	t.Helper()
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if mask, ok := strings.CutPrefix(line, "SigIgn:"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("process %s: no SigIgn", pid)
	return 0
}

// Signals before the program runs end run: nothing runs, and nothing is left.
func TestRunInterruptedBeforeItRuns(t *testing.T) {
	for _, method := range []string{"Plan", "Attach"} {
		t.Run(method, func(t *testing.T) {
			mark := filepath.Join(t.TempDir(), "ran")
			entered := make(chan struct{})
			leave := make(chan struct{})
			h := clienttest.Start(t, clienttest.Behaviour{Before: func(_ context.Context, m string, _ any) {
				if m == method {
					close(entered)
					<-leave
				}
			}})
			r := startRun(t, h, "touch", mark)
			<-entered
			r.Process.Signal(syscall.SIGWINCH) // ends nothing
			r.Process.Signal(syscall.SIGTERM)
			if _, status := r.wait(); status != 143 {
				t.Errorf("status %d: %s", status, r.errOut.String())
			}
			close(leave)
			eventually(t, "nothing is left", func() bool {
				c, live := h.Counts()
				return live == 0 && c.Plans == c.Attaches+c.Abandons && c.Attaches == c.Teardowns
			})
			if _, err := os.Stat(mark); err == nil {
				t.Error("the program ran")
			}
		})
	}
}

// A runner that is killed takes its box with it.
func TestRunKilled(t *testing.T) {
	h := clienttest.Start(t, clienttest.Behaviour{})
	r := startRun(t, h, "sh", "-c", "true"+busy)
	pid, err := strconv.Atoi(r.line())
	if err != nil {
		t.Fatal(err)
	}
	r.Process.Kill()
	eventually(t, "the program is gone", func() bool { return state(pid) == "" })
	eventually(t, "the lease is gone", func() bool { _, live := h.Counts(); return live == 0 })
}

// The helper closes the connection: it ends the box, and run says whose fault that is.
func TestRunLosesItsConnection(t *testing.T) {
	h := clienttest.Start(t, clienttest.Behaviour{})
	r := startRun(t, h, "sh", "-c", "true"+busy)
	pid := r.line()
	h.Drop()
	if _, status := r.wait(); status != statusRunFailed {
		t.Errorf("status %d", status)
	}
	if got := r.errOut.String(); !strings.Contains(got, "the helper was lost, and box lease1 was ended") {
		t.Errorf("standard error %q", got)
	}
	if n, _ := strconv.Atoi(pid); state(n) != "" {
		t.Error("the program lives")
	}
	atRest(t, h)
}

// The helper dies and does not come back: run ends the program itself, since a box without a
// helper is nobody's.
func TestRunLosesItsHelper(t *testing.T) {
	t.Parallel()
	h := clienttest.Start(t, clienttest.Behaviour{})
	r := startRun(t, h, "sh", "-c", "sleep 60")
	eventually(t, "it is attached", func() bool { c, _ := h.Counts(); return c.Attaches == 1 })
	h.Stop()
	if _, status := r.wait(); status != statusRunFailed {
		t.Errorf("status %d", status)
	}
	if got := r.errOut.String(); !strings.Contains(got, "the helper was lost") || !strings.Contains(got, "next: minhost status") {
		t.Errorf("standard error %q", got)
	}
}

// The helper is restarted and knows its boxes: the program does not notice.
func TestRunFindsARestartedHelper(t *testing.T) {
	h := clienttest.Start(t, clienttest.Behaviour{})
	r := startRun(t, h, "sh", "-c", "trap 'exit 5' USR1"+busy)
	r.line()
	h.Stop()
	h.Listen(t)
	adopted := func() (n int) {
		for _, call := range h.Calls() {
			if call.Method == "Adopt" {
				n++
			}
		}
		return n
	}
	eventually(t, "the box is adopted", func() bool { return adopted() > 0 })
	time.Sleep(100 * time.Millisecond)
	r.Process.Signal(syscall.SIGUSR1)
	if _, status := r.wait(); status != 5 || r.errOut.Len() != 0 {
		t.Errorf("status %d, standard error %q", status, r.errOut.String())
	}
	if n := adopted(); n != 1 {
		t.Errorf("adopted %d times", n)
	}
	atRest(t, h)
}

// state is the letter of /proc/PID/stat; "" for no process.
func state(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	if rest[:1] == "Z" {
		return "" // ended; who reaps it is another's business
	}
	return rest[:1]
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Errorf("not within 5 s: %s", what)
}
