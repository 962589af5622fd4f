package pty_test

import (
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/linux/pty"
)

func open(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close(); slave.Close() })
	master.SetReadDeadline(time.Now().Add(10 * time.Second))
	return master, slave
}

func TestRawAndBack(t *testing.T) {
	master, slave := open(t)
	if !pty.Is(slave) || pty.Is(os.NewFile(0xffff, "none")) {
		t.Error("what is a terminal, what not")
	}
	got := make([]byte, 16)
	slave.WriteString("a\n")
	if n, err := master.Read(got); err != nil || string(got[:n]) != "a\r\n" {
		t.Errorf("a new terminal writes %q, %v", got[:n], err)
	}
	before, err := pty.Raw(slave)
	if err != nil {
		t.Fatal(err)
	}
	slave.WriteString("b\n")
	if n, err := master.Read(got); err != nil || string(got[:n]) != "b\n" {
		t.Errorf("a raw terminal writes %q, %v", got[:n], err)
	}
	master.WriteString("\x03") // would be a signal, and two characters on the screen
	if n, err := slave.Read(got); err != nil || string(got[:n]) != "\x03" {
		t.Errorf("a raw terminal reads %q, %v", got[:n], err)
	}
	if err := before.Set(slave); err != nil {
		t.Fatal(err)
	}
	if again, err := pty.Get(slave); err != nil || again != before {
		t.Errorf("not as before: %v", err)
	}
}

func TestResize(t *testing.T) {
	master, slave := open(t)
	_, other := open(t)
	if err := unix.IoctlSetWinsize(int(other.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 77}); err != nil {
		t.Fatal(err)
	}
	pty.Resize(master, other)
	if size, err := unix.IoctlGetWinsize(int(slave.Fd()), unix.TIOCGWINSZ); err != nil || size.Row != 33 || size.Col != 77 {
		t.Errorf("%+v, %v", size, err)
	}
}

func TestNobodyHasTheSlave(t *testing.T) {
	master, slave := open(t)
	slave.WriteString("last")
	slave.Close()
	all, err := io.ReadAll(master)
	if string(all) != "last" || err == nil {
		t.Errorf("%q, %v", all, err)
	}
}
