package main

import (
	"fmt"
	"os"
	"os/exec"
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

// expect reads until the screen shows s behind what was expected before.
func (y *typist) expect(s string) {
	y.t.Helper()
	buf := make([]byte, 4096)
	y.master.SetReadDeadline(time.Now().Add(10 * time.Second))
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
	y.typed("$RUN sh -c 'echo rea\"\"dy; exec cat'\n")
	y.expect("ready\r\n")
	y.typed("one\n")
	y.expect("one\r\none\r\n")
	y.typed(ctrlZ)
	y.expect("Stopped")
	y.typed("echo sh\"\"ell\n")
	y.expect("shell\r\n")
	y.typed("fg\n")
	y.expect("exec cat'\r\n") // bash repeats the command
	y.typed("two\n")
	y.expect("two\r\ntwo\r\n")
	y.typed(ctrlC)
	y.expect("% ")
	y.typed("echo status=$?\n")
	y.expect("status=130\r\n")

	t.Log("end of file, and the status")
	y.typed("$RUN sh -c 'cat; exit 9'\n")
	y.typed("three\n")
	y.expect("three\r\nthree\r\n")
	y.typed(ctrlD)
	y.expect("% ")
	y.typed("echo status=$?\n")
	y.expect("status=9\r\n")

	t.Log("the quit key")
	y.typed("$RUN sh -c 'echo rea\"\"dy; exec cat' 2>/dev/null\n")
	y.expect("ready\r\n")
	y.typed(ctrlBackslash)
	y.expect("% ")
	y.typed("echo status=$?\n")
	y.expect("status=131\r\n")
	atRest(t, h)
}

func TestRunInTheBackgroundOfATerminal(t *testing.T) {
	h := clienttest.Start(t, clienttest.Behaviour{})
	y := newTypist(t, h)

	t.Log("a job in the background leaves the terminal to the shell")
	y.typed("$RUN sh -c 'echo do\"\"ne' & wait; echo shell\"\"$?\n")
	y.expect("done\r\n")
	y.expect("shell0\r\n")

	t.Log("one that wants to read stops until it is in the foreground")
	y.typed("$RUN sh -c 'read line; echo got $line' &\n")
	y.expect("% ")
	eventually(t, "it is attached", func() bool { c, _ := h.Counts(); return c.Attaches == 2 })
	y.typed("set -b\n") // tells of jobs at once, not before the next prompt
	y.expect("Stopped")
	y.typed("fg\n")
	y.typed("hello\n")
	y.expect("got hello\r\n")

	t.Log("stopped, continued in the background, ended there")
	y.typed("$RUN sh -c 'echo rea\"\"dy; sleep 1; echo slept; exit 3'\n")
	y.expect("ready\r\n")
	y.typed(ctrlZ)
	y.expect("Stopped")
	y.typed("bg\n")
	y.expect("slept\r\n")
	y.typed("wait; echo shell\"\"end\n")
	y.expect("shellend\r\n")
	atRest(t, h)
}

// Ctrl-C reaches only the program's process group; the script around run must end all the same.
func TestRunInterruptedInAScript(t *testing.T) {
	h := clienttest.Start(t, clienttest.Behaviour{})
	y := newTypist(t, h)
	y.typed("bash -c \"$RUN sh -c 'echo rea\\\"\\\"dy; sleep 60'; echo the script goes on\"\n")
	y.expect("ready\r\n")
	y.typed(ctrlC)
	y.expect("% ")
	y.typed("echo status=$?\n")
	y.expect("status=130\r\n")
	if strings.Contains(y.seen, "goes on") {
		t.Errorf("the screen shows %q", y.seen)
	}
	atRest(t, h)
}
