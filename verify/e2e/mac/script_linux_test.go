package mac

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/linux/pty"
	"github.com/gominimal/minhost/verify/fakedarwin"
)

const macScript = "../../../packaging/darwin/verify-on-a-mac.sh"

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
	if err := os.MkdirAll(filepath.Join(m.Root, "Applications/Safari.app"), 0o755); err != nil {
		t.Fatal(err)
	}
	report := m.person("before", "now reboot")
	if !strings.Contains(report, "lookups while Safari loads") || !strings.Contains(report, "A one.min.internal: address") {
		t.Errorf("what the browser looked up is not in the report:\n%s", report)
	}
	if err := m.Reboot(0); err != nil {
		t.Fatal(err)
	}
	m.person("after", "then send /Users/ada/minhost-mac-report.tar.gz")
}

// person runs a part of the script at a terminal, says yes to the plan, and presses return whenever it asks. It gives
// what the report has then.
func (m *mac) person(part, last string) (report string) {
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
	text, report := string(out), m.as(0, "/bin/cat", "/Users/ada/minhost-mac-report/"+part+".txt").stdout
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) || !strings.Contains(text, last) || !strings.HasSuffix(text, "\n0 checks failed\n") {
		m.t.Fatalf("%s: %v\n%s\nreport:\n%s", part, err, text, report)
	}
	if n := strings.Count(text, "\nok "); n < 15 {
		m.t.Errorf("%s: only %d checks", part, n)
	}
	return report
}
