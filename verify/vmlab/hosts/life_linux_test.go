package hosts

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/vmlab"
)

// TestLife: install, use, reboot, use, upgrade, use, undo. After the reboot nobody does anything;
// after the undo the machine is as it was.
func TestLife(t *testing.T) {
	for _, suite := range []string{"bookworm", "trixie"} {
		t.Run(suite, func(t *testing.T) {
			h := newHost(t, suite)
			// networkd takes every link it has no other file for, minhost's too, unless told.
			h.Write("/etc/systemd/network/90-all.network", "[Match]\nName=*\n[Network]\nDHCP=yes\nDNS=198.51.100.1\n[DHCPv4]\nMaxAttempts=1\n", 0o644)
			life(t, h, true)
		})
	}
}

// TestLifeWithoutResolved: the names step is Blocked, all others are done, and the answerer answers
// who asks it.
func TestLifeWithoutResolved(t *testing.T) {
	h := newHost(t, "bookworm")
	h.Link("/etc/systemd/system/systemd-resolved.service", "/dev/null")
	h.Write("/etc/resolv.conf", "nameserver "+vmlab.Outside+"\n", 0o644)
	life(t, h, false)
}

func life(t *testing.T, h *host, resolved bool) {
	h.boot()
	before := h.Snapshot()
	well := h.watchNames()
	h.lap("booted")
	h.install()
	h.lap("installed")
	h.verify()
	h.lap("verified")
	h.use(resolved)
	h.lap("used")
	if again := h.Must(vmlab.Program(vmlab.Minhost), "finalize-install", "--yes", "--operator", vmlab.Runner); !strings.Contains(again.Stdout, "nothing to do") && resolved {
		t.Errorf("applied twice: %v", again)
	}

	well()
	h.Reboot()
	h.lap("rebooted")
	if took := h.unitTook("minhost-tree.service"); took > 2*time.Second {
		t.Errorf("the network waited %v for the tree at boot", took)
	}
	h.eventually(15*time.Second, "names of the outside world", h.outerNameResolves)
	h.lap("outer names")
	h.verify()
	h.use(resolved)

	h.lap("used")
	well = h.watchNames()
	h.upgrade()
	h.lap("upgraded")
	h.use(resolved)
	if s := h.strangers(); s != "" {
		t.Errorf("the answerer was asked for names outside the zone: %s", s)
	}
	h.Must("dig", "@127.0.0.1", "-p", "15353", "www.example.com")
	if h.strangers() == "" {
		t.Error("the answerer does not tell of a name outside the zone: the check above cannot fail")
	}

	h.Must(installed, "finalize-install", "--undo", "--yes")
	well()
	h.lap("undone")
	h.Same(before)
	if !h.outerNameResolves() {
		t.Error("a name of the outside world does not resolve after undo")
	}
	if zone := h.names.Leaked(); len(zone) > 0 && resolved {
		t.Errorf("names of the zone were asked outside: %v", zone)
	}
	h.Reboot()
	h.eventually(15*time.Second, "names of the outside world", h.outerNameResolves)
	h.Same(before)
}

// unitTook is how long a unit took to be ready at this boot.
func (h *host) unitTook(unit string) time.Duration {
	h.t.Helper()
	var us [2]int64
	for i, p := range []string{"InactiveExitTimestampMonotonic", "ActiveEnterTimestampMonotonic"} {
		v, err := strconv.ParseInt(strings.TrimSpace(h.Must("systemctl", "show", "--value", "-p", p, unit).Stdout), 10, 64)
		if err != nil {
			h.t.Fatal(err)
		}
		us[i] = v
	}
	took := time.Duration(us[1]-us[0]) * time.Microsecond
	h.t.Logf("%s was ready after %v", unit, took)
	return took
}

// use runs a box that may reach nothing and one that may reach one server, and looks its name up.
func (h *host) use(resolved bool) {
	h.t.Helper()
	curl := func(url string) []string {
		return []string{"/usr/bin/curl", "-sS", "--http0.9", "-o", "/dev/null", "-m", "2", url}
	}
	open, shut := "telnet://"+h.open.Addr(), "telnet://"+h.shut.Addr()
	hits, shuts := h.open.Hits(), h.shut.Hits()
	if r := h.run([]string{"--name", "deny", "--egress", "deny"}, curl(open)...); r.Status != 7 {
		h.t.Errorf("a deny box: want curl to be refused (7): %v", r)
	}
	if h.open.Hits() != hits {
		h.t.Error("a deny box reached the outside")
	}
	if r := h.run([]string{"--name", "allow", "--allow", vmlab.Outside + "/32:8080"}, curl(open)...); h.open.Hits() == hits {
		h.t.Errorf("an allow box did not reach what it may: %v", r)
	}
	if r := h.run([]string{"--name", "allow", "--allow", vmlab.Outside + "/32:8080"}, curl(shut)...); r.Status != 7 || h.shut.Hits() != shuts {
		h.t.Errorf("an allow box: want curl to be refused (7): %v", r)
	}

	box := h.Start(vmlab.Runner, installed, "run", "--name", "web", "--egress", "deny", "--", "/bin/sh", "-c", "echo up; exec sleep 60")
	box.Await("up")
	h.inRange("dig at the answerer", h.Must("dig", "+short", "+timeout=2", "@127.0.0.1", "-p", "15353", "web.min.internal").Stdout)
	if resolved {
		h.inRange("dig through the stub", h.Must("dig", "+short", "+timeout=2", "web.min.internal").Stdout)
		h.inRange("getent", first(h.Must("getent", "ahostsv4", "web.min.internal").Stdout))
		h.inRange("python", h.Must("python3", "-c", "import socket; print(socket.gethostbyname('web.min.internal'))").Stdout)
		h.inRange("resolvectl", h.Sh("resolvectl query --legend=no web.min.internal | sed -n 's/^web.min.internal: \\([0-9.]*\\).*/\\1/p'").Stdout)
	}
	if !h.outerNameResolves() {
		h.t.Error("a name of the outside world does not resolve")
	}
	if err := box.Stop(syscall.SIGTERM); err != nil {
		h.t.Error(err)
	}
}

func first(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// TestHolderWithoutBoxes: with no box in it the tree is empty, and systemd removes empty folders of a
// unit that starts again. What comes back has other ids, which table and helper must learn.
func TestHolderWithoutBoxes(t *testing.T) {
	h := newHost(t, "trixie")
	h.boot()
	h.install()
	h.Sh("kill -9 $(systemctl show --value -p MainPID minhost-tree.service)")
	time.Sleep(500 * time.Millisecond)
	h.eventually(5*time.Second, "verify", func() bool { return h.Try(installed, "verify").Status == 0 })
	h.use(true)
}

// upgrade installs another version over a live box: box, tree and verdict stay.
func (h *host) upgrade() {
	h.t.Helper()
	box := h.Start(vmlab.Runner, installed, "run", "--name", "live", "--egress", "deny", "--", "/bin/sh", "-c", "cat /proc/self/cgroup; echo up; exec sleep 60")
	box.Await("up")
	leaf := boxGroup(box.Stdout())
	id, holder := h.Inode(leaf), h.Must("systemctl", "show", "--value", "-p", "MainPID", "minhost-tree.service").Stdout
	h.Must(vmlab.Program(vmlab.Next), "finalize-install", "--yes", "--operator", vmlab.Runner)
	if now := h.Must("systemctl", "show", "--value", "-p", "MainPID", "minhost-tree.service").Stdout; now != holder {
		h.t.Errorf("the tree's process was %s and is %s: an upgrade restarted it", holder, now)
	}
	if now := h.Inode(leaf); now != id {
		h.t.Errorf("the leaf has id %d, had %d", now, id)
	}
	if box.Ended() {
		h.t.Errorf("the box ended: %s", box.Stderr())
	}
	status := h.TryAs(vmlab.Runner, installed, "status")
	if !strings.Contains(status.Stdout, "lab-next") {
		h.t.Errorf("not the new helper: %v", status)
	}
	h.verify()
	if err := box.Stop(syscall.SIGTERM); err != nil {
		h.t.Error(err)
	}
}

// boxGroup is the cgroup2 line of /proc/self/cgroup.
func boxGroup(text string) string {
	for line := range strings.Lines(text) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/"); ok {
			return path
		}
	}
	return "no cgroup2 line in " + text
}
