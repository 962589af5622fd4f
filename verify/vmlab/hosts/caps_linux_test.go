package hosts

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/vmlab"
)

// TestCapabilities measures the capability lists of the units: with any one of them taken away
// something fails, with all of them nothing does.
func TestCapabilities(t *testing.T) {
	h := newHost(t, "bookworm")
	h.boot()
	h.install()
	for _, c := range []struct {
		unit  string
		again string // line of shell that starts the unit anew, with nothing done yet
		works func() string
	}{
		{"minhost-helper.service", "systemctl restart minhost-helper.service", h.helperWorks},
		{"minhost-tree.service", treeAnew, h.treeWorks},
		{"minhost-names.service", "systemctl stop minhost-names.service; ip link del min0; systemctl start minhost-names.service", h.namesWork},
		{unitVerify, verifyAnew, h.verifyUnitWorks},
		{"minhost-resolverd.service", "systemctl restart minhost-resolverd.service", h.namesWork},
	} {
		caps := h.capabilities(c.unit)
		t.Logf("%s: %v", c.unit, caps)
		for _, name := range caps {
			if why := h.without(c.unit, name, c.again, c.works); why == "" {
				t.Errorf("%s works without %s", c.unit, name)
			} else {
				t.Logf("%s without %s: %s", c.unit, name, why)
			}
		}
		if why := h.without(c.unit, "", c.again, c.works); why != "" {
			t.Fatalf("%s with every capability it asks for: %s", c.unit, why)
		}
	}
}

// treeAnew removes everything that the unit makes, and starts it.
const treeAnew = `systemctl stop minhost-helper.socket minhost-helper.service minhost-tree.service
nft delete table inet minhost
rm -rf /run/minhost
systemctl start minhost-tree.service minhost-helper.socket minhost-helper.service`

// verifyAnew has the unit look once, with an expectation that another boot seems to have kept.
const verifyAnew = `minhost=/usr/local/lib/minhost/minhost
[ -e /var/lib/minhost/reboot.json ] || { sleep 2; $minhost verify --before-reboot; }
sed -i 's/"boot_id": ".*"/"boot_id": "another"/' /var/lib/minhost/reboot.json
printf '[Service]\nExecStart=\nExecStart='$minhost' verify --after-reboot --line\nStandardOutput=truncate:/run/line\nType=oneshot\n' \
	>/run/systemd/system/minhost-verify.service.d/once.conf
systemctl daemon-reload
systemctl start minhost-verify.service || true`

// verifyUnitWorks is its line, but for the one thing that is wrong: this test installed in this boot.
func (h *host) verifyUnitWorks() string {
	line := strings.TrimSpace(h.Try("cat", "/run/line").Stdout)
	if strings.Contains(line, "1 failed; by itself: applied by hand") && !strings.Contains(line, "unknown") {
		return ""
	}
	return line + h.lastWords(unitVerify)
}

// capabilities are those that the unit asks for.
func (h *host) capabilities(unit string) []string {
	h.t.Helper()
	text := h.Must("systemctl", "show", "--value", "-p", "CapabilityBoundingSet", unit).Stdout
	return strings.Fields(text)
}

// without starts the unit anew with one capability less and says what does not work.
func (h *host) without(unit, capability, again string, works func() string) string {
	h.t.Helper()
	dir := "/run/systemd/system/" + unit + ".d"
	// The unit that refuses to be stopped is stopped here, and nothing waits for a restart.
	dropIn := "[Unit]\nRefuseManualStop=no\n[Service]\nRestart=no\n"
	if capability != "" {
		dropIn += "CapabilityBoundingSet=~" + capability + "\n"
	}
	h.Sh(fmt.Sprintf("mkdir -p %s; printf '%s' >%s/lab.conf; systemctl daemon-reload", dir, strings.ReplaceAll(dropIn, "\n", `\n`), dir))
	defer h.Sh(fmt.Sprintf("rm -r %s; systemctl daemon-reload; systemctl reset-failed", dir))
	if r := h.Try("/bin/sh", "-c", again); r.Status != 0 {
		return "does not start: " + h.lastWords(unit)
	}
	return works()
}

// lastWords is the last line of the unit itself in the journal.
func (h *host) lastWords(unit string) string {
	return strings.TrimSpace(h.Try("/bin/sh", "-c", "journalctl -b -o cat -u "+unit+" | grep -v systemd | grep -i minhost: | tail -1").Stdout)
}

// treeWorks is what the unit makes, seen by root and used by boxes.
func (h *host) treeWorks() string { return h.helperWorks() }

// helperWorks uses everything that the helper does.
func (h *host) helperWorks() string {
	verify := func() string {
		r := h.Try(installed, "verify")
		for line := range strings.Lines(r.Stdout + r.Stderr) {
			if strings.HasPrefix(line, "failed") || r.Status != 0 && strings.HasPrefix(line, "minhost:") {
				return strings.TrimSpace(line)
			}
		}
		if r.Status != 0 {
			return r.String()
		}
		return ""
	}
	if why := verify(); why != "" {
		return "verify: " + why
	}
	probe := []string{vmlab.Program(vmlab.Probe), "open=tcp:" + h.open.Addr()}
	for _, c := range []struct{ flag, want string }{
		{"--egress=deny", "open connection-refused"}, {"--allow=" + vmlab.Outside + "/32:8080", "open ok"}, {"--egress=open", "open ok"},
	} {
		box := h.Start(vmlab.Runner, append([]string{installed, "run", "--name", "cap", c.flag, "--"}, probe...)...)
		if !within(3*time.Second, func() bool { return strings.Contains(box.Stdout(), c.want) }) {
			return fmt.Sprintf("box with %s: %q %q", c.flag, box.Stdout(), strings.TrimSpace(box.Stderr()))
		}
		// The runner is killed: the helper ends what is left of its box.
		if err := box.Stop(syscall.SIGKILL); err != nil {
			return err.Error()
		}
		if !within(3*time.Second, func() bool { return !strings.Contains(h.Try(installed, "ls").Stdout, "cap") }) {
			return "the box does not end with its runner: " + h.Try(installed, "ls").Stdout
		}
	}
	// A program of a service has a socket for its output, which the helper looks at before it attaches.
	if r := h.Try("systemd-run", "--wait", "--collect", "-q", "-p", "User="+vmlab.Runner, installed, "run", "--name", "cap", "--egress=deny", "--", "/bin/true"); r.Status != 0 {
		return "a box of a service: " + r.String()
	}
	// A socket of the box on a port below 1024, made by a child of the helper inside the leaf, as the box's user.
	if r := h.Try("systemd-run", "--wait", "--collect", "-q", "-p", "User="+vmlab.Runner, installed, "run", "--name", "cap", "--listen", "80", "--egress=deny", "--", "/bin/true"); r.Status != 0 {
		return "a listener of a box: " + r.String()
	}
	if why := h.escape(); why != "" {
		return why
	}
	h.Try("nft", "delete", "table", "inet", "minhost")
	why := ""
	if !within(3*time.Second, func() bool { why = verify(); return why == "" }) {
		return "table deleted: " + why
	}
	return ""
}

// escape has root move a process out of its box, as the service manager does on request: the helper
// ends it.
func (h *host) escape() string {
	box := h.Start(vmlab.Runner, installed, "run", "--name", "cap", "--egress=deny", "--", "/bin/sh", "-c", "cat /proc/self/cgroup; echo up; exec sleep 30")
	box.Await("up")
	// It has been seen inside: that is once a second or so.
	time.Sleep(2500 * time.Millisecond)
	h.Sh("for pid in $(cat /sys/fs/cgroup/" + boxGroup(box.Stdout()) + "/cgroup.procs); do echo $pid >/sys/fs/cgroup/init.scope/cgroup.procs; done")
	if !within(5*time.Second, box.Ended) {
		return "a process that was moved out of its box lives on"
	}
	return ""
}

// namesWork is a name of a box through systemd-resolved.
func (h *host) namesWork() string {
	box := h.Start(vmlab.Runner, installed, "run", "--name", "cap", "--egress=deny", "--", "/bin/sleep", "20")
	var r vmlab.Result
	ok := within(5*time.Second, func() bool {
		r = h.Try("getent", "ahostsv4", "cap.min.internal")
		return strings.HasPrefix(r.Stdout, "127.0.64.")
	})
	if err := box.Stop(syscall.SIGTERM); err != nil {
		return err.Error()
	}
	if !ok {
		return "no name: " + h.lastWords("minhost-names.service")
	}
	return ""
}

func within(limit time.Duration, holds func() bool) bool {
	for end := time.Now().Add(limit); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
