package mac

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/linux/pty"
	"github.com/gominimal/minhost/verify/fakedarwin"
)

// TestMacScript: anywhere else than on a Mac the script stops at once.
func TestMacScript(t *testing.T) {
	out, err := exec.Command("/bin/sh", macScript, "before").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "this is not a Mac") {
		t.Errorf("here it must stop at once: %v\n%s", err, out)
	}
}

// TestMacScriptOnTheModel runs both parts with a reboot between them, as a person would. Every check must be
// right on the model, so that one that fails on a Mac tells of the Mac and not of the script.
func TestMacScriptOnTheModel(t *testing.T) {
	m := newMac(t, nil)
	if err := fakedarwin.Copy(macScript, filepath.Join(m.Root, "Users/ada/verify.sh"), 0o644); err != nil {
		t.Fatal(err)
	}
	m.person("before", "now reboot")
	if err := m.Reboot(0); err != nil {
		t.Fatal(err)
	}
	m.person("after", "then send /Users/ada/minhost-mac-report.tar.gz")
}

// person runs a part of the script at a terminal, says yes to the plan, and presses return whenever it asks.
func (m *mac) person(part, last string) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), 5*time.Minute)
	defer cancel()
	cmd := m.command(ctx, fakedarwin.Ada, "/bin/sh", "/Users/ada/verify.sh", part, program)
	keyboard, stdin, err := pty.Open()
	if err != nil {
		m.t.Fatal(err)
	}
	defer keyboard.Close()
	defer stdin.Close()
	go io.Copy(io.Discard, keyboard) // the echo
	if _, err := keyboard.WriteString("y" + strings.Repeat("\n", 20)); err != nil {
		m.t.Fatal(err)
	}
	cmd.Stdin = stdin
	cmd.WaitDelay = 5 * time.Second // its boxes have its output open
	out, err := cmd.CombinedOutput()
	text := string(out)
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) || !strings.Contains(text, last) || !strings.HasSuffix(text, "\n0 checks failed\n") {
		log := m.as(0, "/bin/cat", "/Users/ada/minhost-mac-report/"+part+".txt").stdout
		m.t.Fatalf("%s: %v\n%s\nreport:\n%s", part, err, text, log)
	}
	if n := strings.Count(text, "\nok "); n < 15 {
		m.t.Errorf("%s: only %d checks", part, n)
	}
}
