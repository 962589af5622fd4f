package launchd

import (
	"os"
	"testing"
)

func fixture(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParsePrint(t *testing.T) {
	for name, want := range map[string]Status{
		"launchctl-print-01-running.txt": {Loaded: true, State: "running", PID: 431, Exit: "(never exited)", Runs: 1,
			Program: "/Library/PrivilegedHelperTools/dev.minimal.helper"},
		"launchctl-print-02-oneshot-exited-0.txt": {Loaded: true, State: "not running", Exit: "0", Runs: 1,
			Program: "/Library/PrivilegedHelperTools/dev.minimal.helper"},
		"launchctl-print-03-still-starting.txt": {Loaded: true, State: "xpcproxy", PID: 612, Exit: "(never exited)", Runs: 1,
			Program: "/Library/PrivilegedHelperTools/dev.minimal.helper"},
		"launchctl-print-04-crash-loop.txt": {Loaded: true, State: "spawn scheduled", Exit: "78: EX_CONFIG", Signal: "Killed: 9", Runs: 37,
			Program: "/Library/PrivilegedHelperTools/dev.minimal.helper"},
	} {
		if got := parsePrint(fixture(t, name)); got != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestParsePrintNested: blocks inside the job's have words of the same kind.
func TestParsePrintNested(t *testing.T) {
	text := "system/x = {\n\tendpoints = {\n\t\tstate = running\n\t\tpid = 9\n\t}\n  state = not running\n}\n"
	if s := parsePrint([]byte(text)); s.State != "not running" || s.PID != 0 {
		t.Errorf("%+v", s)
	}
}

func TestParseDisabled(t *testing.T) {
	latest := string(fixture(t, "launchctl-print-disabled-new.txt"))
	old := "\tdisabled services = {\n\t\t\"dev.minimal.helper\" => false\n\t\t\"dev.minimal.loopback\" => true\n\t\t\"dev.minimal.loopback2\" => true\n\t}\n"
	for _, text := range []string{latest, old} {
		for label, want := range map[string]bool{"dev.minimal.loopback": true, "dev.minimal.helper": false, "dev.minimal.resolverd": false,
			"dev.minimal.loop": false, "minimal.loopback": false} {
			if got := parseDisabled([]byte(text), label); got != want {
				t.Errorf("%s in\n%s: %v", label, text, got)
			}
		}
	}
	only2 := "\t\t\"dev.minimal.loopback2\" => disabled\n"
	if parseDisabled([]byte(only2), "dev.minimal.loopback") {
		t.Error("a label that begins alike is taken for ours")
	}
}
