package hosts

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/vmlab"
)

const unitVerify = "minhost-verify.service"

// TestAfterReboot: an expectation is kept, the machine is rebooted, and everything is back by itself; the
// unit says so in one line of the journal, and the script for admins sees it too. Then each thing that
// must be noticed is.
func TestAfterReboot(t *testing.T) {
	h := newHost(t, "trixie")
	h.boot()
	before := h.Snapshot()
	h.install()
	h.eventually(10*time.Second, "verify", func() bool { return h.Try(installed, "verify").Status == 0 })
	h.Must(installed, "verify", "--before-reboot")
	if r := h.Try(installed, "verify", "--after-reboot"); r.Status != 1 || !strings.Contains(r.Stdout, "still the boot") {
		t.Errorf("without a reboot: %v", r)
	}
	h.Must("systemctl", "enable", unitVerify)
	script, err := os.ReadFile("../../after-reboot.sh")
	if err != nil {
		t.Fatal(err)
	}
	h.Write("/usr/local/sbin/after-reboot.sh", string(script), 0o755)

	h.Reboot()
	line := h.verifyLine()
	for _, want := range []string{"after reboot: ready: ", "tree ", "answerer ", "helper "} {
		if !strings.Contains(line, want) {
			t.Errorf("the unit's line has no %q: %s", want, line)
		}
	}
	h.Must(installed, "verify", "--after-reboot")
	var got struct {
		Schema string
		Ready  bool
		Times  map[string]float64 `json:"seconds_after_kernel_start"`
	}
	if err := json.Unmarshal([]byte(h.Must(installed, "verify", "--after-reboot", "--json").Stdout), &got); err != nil || !got.Ready || got.Times["tree"] == 0 || got.Times["helper"] < got.Times["tree"] {
		t.Errorf("%v %+v", err, got)
	}
	t.Logf("seconds after kernel start: %v (the kernel is this machine's own)", got.Times)
	h.Must("/usr/local/sbin/after-reboot.sh")

	h.Sh("systemctl stop minhost-helper.socket minhost-helper.service; nft delete table inet minhost")
	h.notices("the table is gone", "table", "FAIL  the table is there")
	h.Must(installed, "apply")
	h.notices("applied by hand", "by hand in this boot", "FAIL  minhost verify --after-reboot")

	h.Reboot()
	if line := h.verifyLine(); !strings.Contains(line, "after reboot: ready: ") {
		t.Errorf("a boot later: %s", line)
	}
	h.Sh("cp " + vmlab.Program(vmlab.Minhost) + " " + vmlabCopy + "; printf x >>" + vmlabCopy + "; " + vmlabCopy + " finalize-install --yes --operator " + vmlab.Runner)
	h.notices("another program", "digest", "FAIL  minhost verify --after-reboot")
	h.Must(installed, "finalize-install", "--undo", "--yes")
	h.Sh("rm /usr/local/sbin/after-reboot.sh " + vmlabCopy)
	h.Same(before)
}

// vmlabCopy is a copy of the program that a test changes: the lab's own is one file for all machines.
const vmlabCopy = "/var/tmp/minhost"

// verifyLine is the one line of the unit in this boot's journal.
func (h *host) verifyLine() string {
	h.t.Helper()
	text := ""
	h.eventually(70*time.Second, unitVerify+" has its say", func() bool {
		text = strings.TrimSpace(h.Must("journalctl", "-b", "-o", "cat", "-u", unitVerify, "_COMM=minhost").Stdout)
		return text != ""
	})
	if strings.Count(text, "\n") != 0 {
		h.t.Errorf("more than one line:\n%s", text)
	}
	return text
}

// notices wants program and script to see what happened.
func (h *host) notices(what, says, scriptSays string) {
	h.t.Helper()
	if r := h.Try(installed, "verify", "--after-reboot"); r.Status != 1 || !strings.Contains(r.Stdout, says) {
		h.t.Errorf("%s: want %q and status 1: %v", what, says, r)
	}
	if r := h.Try("/usr/local/sbin/after-reboot.sh"); r.Status != 1 || !strings.Contains(r.Stdout, scriptSays) {
		h.t.Errorf("%s: want %q and status 1: %v", what, scriptSays, r)
	}
}
