package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/client/clienttest"
)

// typist types at an interactive bash on a terminal of its own and reads the screen.
type typist struct {
	t      *testing.T
	master *os.File
	seen   string // what expect has not passed yet
}

// newTypist starts the shell; $RUN in it is minhost run against h.
func newTypist(t *testing.T, h *clienttest.Helper) *typist {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(int(master.Fd()), true); err != nil { // Fd made it blocking: no deadline
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	cmd := exec.Command("/bin/bash", "--norc", "--noprofile", "--noediting", "-i")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "PS1=% ", "TERM=dumb", "RUN=" + os.Args[0] + " run --socket " + h.Path}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		master.Close() // hangs up: the shell and its jobs end
		cmd.Process.Kill()
		cmd.Wait()
	})
	return &typist{t: t, master: master}
}

func (y *typist) typed(s string) {
	y.t.Helper()
	if _, err := y.master.WriteString(s); err != nil {
		y.t.Fatal(err)
	}
}

// command types a line at the next prompt.
func (y *typist) command(s string) {
	y.t.Helper()
	y.expect("% ")
	y.typed(s + "\n")
}

// expect reads until the screen shows s behind what was expected before.
func (y *typist) expect(s string) {
	y.t.Helper()
	buf := make([]byte, 4096)
	y.master.SetReadDeadline(time.Now().Add(60 * time.Second)) // a bound for a busy machine
	for {
		if _, behind, ok := strings.Cut(y.seen, s); ok {
			y.seen = behind
			return
		}
		n, err := y.master.Read(buf)
		if err != nil {
			y.t.Fatalf("the screen never showed %q, it ends in %q: %v", s, y.seen, err)
		}
		y.seen += string(buf[:n])
	}
}

const (
	ctrlC, ctrlD, ctrlZ, ctrlBackslash = "\x03", "\x04", "\x1a", "\x1c"
)

func TestRunAtATerminal(t *testing.T) {
	h := clienttest.Start(t, clienttest.Behaviour{})
	y := newTypist(t, h)

	t.Log("the program reads the terminal, stops with the job and goes on with it")
	y.command("$RUN sh -c 'echo rea\"\"dy; exec cat'")
	y.expect("ready\r\n")
	y.typed("one\n")
	y.expect("one\r\none\r\n")
	y.typed(ctrlZ)
	y.expect("Stopped")
	y.command("echo sh\"\"ell")
	y.expect("shell\r\n")
	y.command("fg")
	y.expect("exec cat'\r\n") // bash repeats the command
	y.typed("two\n")
	y.expect("two\r\ntwo\r\n")
	y.typed(ctrlC)
	y.command("echo status=$?")
	y.expect("status=130\r\n")

	t.Log("end of file, and the status")
	y.command("$RUN sh -c 'cat; exit 9'")
	y.typed("three\n")
	y.expect("three\r\nthree\r\n")
	y.typed(ctrlD)
	y.command("echo status=$?")
	y.expect("status=9\r\n")

	t.Log("the quit key")
	y.command("$RUN sh -c 'echo rea\"\"dy; exec cat' 2>/dev/null")
	y.expect("ready\r\n")
	y.typed(ctrlBackslash)
	y.command("echo status=$?")
	y.expect("status=131\r\n")
	atRest(t, h)
}

func TestRunInTheBackgroundOfATerminal(t *testing.T) {
	h := clienttest.Start(t, clienttest.Behaviour{})
	y := newTypist(t, h)

	t.Log("a job in the background leaves the terminal to the shell")
	y.command("$RUN sh -c 'echo do\"\"ne' & wait; echo shell\"\"$?")
	y.expect("done\r\n")
	y.expect("shell0\r\n")

	t.Log("one that wants to read stops until it is in the foreground")
	y.command("$RUN sh -c 'read line; echo got $line' &")
	eventually(t, "it is attached", func() bool { c, _ := h.Counts(); return c.Attaches == 2 })
	y.command("set -b") // tells of jobs at once, not before the next prompt
	y.expect("Stopped")
	y.typed("fg\n") // the prompt was there before
	y.typed("hello\n")
	y.expect("got hello\r\n")

	t.Log("stopped, continued in the background, ended there")
	// Counting, not sleep: a shell that waits in vfork for a stopped child does not stop.
	y.command("$RUN sh -c 'echo rea\"\"dy; i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; echo counted; exit 3'")
	y.expect("ready\r\n")
	y.typed(ctrlZ)
	y.expect("Stopped")
	y.command("bg")
	y.expect("counted\r\n")
	y.typed("wait; echo shell\"\"end\n")
	y.expect("shellend\r\n")

	t.Log("called to the foreground while it runs")
	y.command("$RUN sh -c 'echo rea\"\"dy; sleep 1; read line; echo got $line' &")
	y.expect("ready\r\n") // behind the prompt
	y.typed("fg\n")
	y.typed("again\n")
	y.expect("got again\r\n")
	y.command("echo sh\"\"ell")
	y.expect("shell\r\n")
	atRest(t, h)
}

// After fg the program has the terminal again before it asks for it.
func TestRunIsInFrontAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "script")
	text := `ulimit -t 60; trap 'set -- $(ps -o pgid=,tpgid= -p $$); [ "$1" = "$2" ] && echo in front; exit 0' INT; echo ready; while :; do :; done`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	h := clienttest.Start(t, clienttest.Behaviour{})
	y := newTypist(t, h)
	y.command("$RUN sh " + file)
	y.expect("ready\r\n")
	y.typed(ctrlZ)
	y.expect("Stopped")
	y.command("fg")
	y.expect(file + "\r\n")
	time.Sleep(300 * time.Millisecond)
	y.typed(ctrlC)
	y.expect("in front\r\n")
	y.command("echo status=$?")
	y.expect("status=0\r\n")
	atRest(t, h)
}

// Ctrl-C reaches only the program's process group; the script around run must end all the same.
func TestRunInterruptedInAScript(t *testing.T) {
	h := clienttest.Start(t, clienttest.Behaviour{})
	y := newTypist(t, h)
	y.command("bash -c \"$RUN sh -c 'echo rea\\\"\\\"dy; exec sleep 60'; echo the script goes on\"")
	y.expect("ready\r\n")
	y.typed(ctrlC)
	y.command("echo status=$?")
	y.expect("status=130\r\n")
	if strings.Contains(y.seen, "goes on") {
		t.Errorf("the screen shows %q", y.seen)
	}
	atRest(t, h)
}
