package main

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/client/clienttest"
)

// What TestRunAtATerminal does with the caller's terminal, in a strict box with one of its own.
func TestRunAtATerminalOfItsOwn(t *testing.T) {
	h := clienttest.Start(t, clienttest.Behaviour{})
	y := newTypist(t, h)

	t.Log("another terminal than the caller's, of its size, with a name")
	size := func(row, col uint16) {
		raw, err := y.master.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		raw.Control(func(fd uintptr) {
			err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: row, Col: col})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	size(33, 77)
	y.command("$RUN --strict sh -c 'tty; stty size; trap \"stty size; exit\" WINCH; echo rea\"\"dy; while :; do sleep 0.05; done'")
	y.expect("/dev/console\r\n33 77\r\nready\r\n")
	size(44, 88)
	y.expect("44 88\r\n")

	t.Log("the program reads it, stops with the job and goes on with it")
	y.command("$RUN --strict sh -c 'echo rea\"\"dy; exec cat'")
	y.expect("ready\r\n")
	y.typed("one\n")
	y.expect("one\r\none\r\n")
	y.typed(ctrlZ)
	y.expect("Stopped")
	y.command("stty -a | grep -o ' icanon\\| echo '; echo sh\"\"ell")
	y.expect("icanon\r\n echo \r\nshell\r\n")
	y.command("fg")
	y.expect("exec cat'\r\n") // bash repeats the command
	y.typed("two\n")
	y.expect("two\r\ntwo\r\n")
	y.typed(ctrlC)
	y.command("echo status=$?; stty -a | grep -o ' icanon'")
	y.expect("status=130\r\n icanon\r\n")

	t.Log("end of file, and the status")
	y.command("$RUN --strict sh -c 'cat; exit 9'")
	y.typed("three\n")
	y.expect("three\r\nthree\r\n")
	y.typed(ctrlD)
	y.command("echo status=$?")
	y.expect("status=9\r\n")

	t.Log("the quit key")
	y.command("$RUN --strict sh -c 'echo rea\"\"dy; exec cat' 2>/dev/null")
	y.expect("ready\r\n")
	y.typed(ctrlBackslash)
	y.command("echo status=$?")
	y.expect("status=131\r\n")

	t.Log("a shell has its own jobs")
	y.command("PS1='in: ' $RUN --strict bash --norc --noprofile --noediting -i")
	y.expect("in: ")
	y.typed("sh -c 'echo ru\"\"ns; exec sleep 100'\n")
	y.expect("runs\r\n")
	y.typed(ctrlZ)
	y.expect("Stopped")
	y.expect("in: ")
	// When bash tells of it by itself is its own affair.
	y.typed("kill -9 %1; while kill -0 %1 2>/dev/null; do sleep 0.01; done; echo job\"\"gone\n")
	y.expect("jobgone\r\n")
	y.typed("exit 5\n")
	y.command("echo status=$?")
	y.expect("status=5\r\n")
	atRest(t, h)
}

func TestATerminalOfItsOwnInTheBackground(t *testing.T) {
	h := clienttest.Start(t, clienttest.Behaviour{})
	y := newTypist(t, h)

	t.Log("a job in the background leaves the terminal to the shell")
	y.command("$RUN --strict sh -c 'echo do\"\"ne' & wait; echo shell\"\"$?")
	y.expect("done\r\n")
	y.expect("shell0\r\n")

	t.Log("stopped, continued in the background, ended there; the terminal is as it was")
	y.command("$RUN --strict sh -c 'echo rea\"\"dy; i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; echo counted; exit 3'")
	y.expect("ready\r\n")
	y.typed(ctrlZ)
	y.expect("Stopped")
	y.command("bg")
	y.expect("counted\r\n")
	y.typed("wait; stty -a | grep -o ' icanon'; echo shell\"\"end\n")
	y.expect(" icanon\r\nshellend\r\n")

	t.Log("called to the foreground while it runs")
	y.command("$RUN --strict sh -c 'echo rea\"\"dy; read line; echo got $line' &")
	y.expect("ready\r\n")
	y.typed("fg\n")
	y.typed("again\n")
	y.expect("got again\r\n")
	y.command("echo sh\"\"ell")
	y.expect("shell\r\n")

	t.Log("without strict, when asked for")
	y.command("$RUN --tty sh -c 'tty | grep -c pts; exec cat'")
	y.expect("1\r\n")
	y.typed(ctrlC)
	y.command("echo status=$?")
	y.expect("status=130\r\n")

	t.Log("not asked for")
	y.command("$RUN --strict --tty=false sh -c 'tty; exit 4'")
	y.expect("not a tty\r\n")
	y.command("echo status=$?")
	y.expect("status=4\r\n")
	atRest(t, h)
}
