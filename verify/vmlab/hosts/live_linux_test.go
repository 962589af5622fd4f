package hosts

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/vmlab"
)

// liveBox is a box whose program tries targets all the time.
type liveBox struct {
	*vmlab.Process
	leaf string
	id   uint64
}

// startLive starts a box with a probe in it.
func (h *host) startLive(name string, flags, targets []string) *liveBox {
	h.t.Helper()
	args := append([]string{installed, "run", "--name", name}, flags...)
	args = append(args, "--", "/bin/sh", "-c", `cat /proc/self/cgroup; exec "$@"`, "sh", vmlab.Program(vmlab.Probe))
	b := &liveBox{Process: h.Start(vmlab.Runner, append(args, targets...)...)}
	for _, t := range targets {
		name, _, _ := strings.Cut(t, "=")
		b.Await(" " + name + " ")
	}
	b.leaf = boxGroup(b.Stdout())
	b.id = h.Inode(b.leaf)
	return b
}

// outcome is the last one of a target.
func (b *liveBox) outcome(target string) string {
	last := ""
	for _, c := range b.changes(target) {
		last = c.what
	}
	return last
}

type change struct {
	at   time.Time
	what string
}

func (b *liveBox) changes(target string) []change {
	var all []change
	for line := range strings.Lines(b.Stdout()) {
		f := strings.Fields(line)
		if len(f) == 3 && f[1] == target {
			ms, err := strconv.ParseInt(f[0], 10, 64)
			if err == nil {
				all = append(all, change{time.UnixMilli(ms), f[2]})
			}
		}
	}
	return all
}

// outage is the longest time since then for which the target was not reached.
func (b *liveBox) outage(target string, since time.Time) time.Duration {
	longest, from := time.Duration(0), time.Time{}
	for _, c := range append(b.changes(target), change{time.Now(), "ok"}) {
		switch {
		case c.what != "ok" && from.IsZero():
			from = c.at
		case c.what == "ok" && !from.IsZero():
			if c.at.After(since) {
				longest = max(longest, c.at.Sub(from))
			}
			from = time.Time{}
		}
	}
	return longest
}

// everOK tells whether the target was ever reached.
func (b *liveBox) everOK(target string) bool {
	for _, c := range b.changes(target) {
		if c.what == "ok" {
			return true
		}
	}
	return false
}

// blow is something that happens to a host while boxes live.
type blow struct {
	name string
	line string // of shell, as root
	// within bounds the outage of what is allowed; 0 is none at all.
	within time.Duration
	refuse bool // the line is to fail
}

// slack is what one try of the probe and a busy machine may add.
const slack = 700 * time.Millisecond

var blows = []blow{
	{name: "helper restarted", line: "systemctl restart minhost-helper.service"},
	{name: "helper killed", line: "kill -9 $(systemctl show --value -p MainPID minhost-helper.service); sleep 1"},
	{name: "helper and its socket restarted", line: "systemctl stop minhost-helper.socket minhost-helper.service; systemctl start minhost-helper.socket minhost-helper.service"},
	{name: "answerer restarted", line: "systemctl restart minhost-resolverd.service"},
	{name: "answerer killed", line: "kill -9 $(systemctl show --value -p MainPID minhost-resolverd.service); sleep 1"},
	{name: "names restarted", line: "systemctl restart minhost-names.service"},
	{name: "holder killed", line: "kill -9 $(systemctl show --value -p MainPID minhost-tree.service); sleep 1"},
	{name: "tree stopped", line: "systemctl stop minhost-tree.service", refuse: true},
	{name: "tree restarted", line: "systemctl restart minhost-tree.service", refuse: true},
	{name: "daemon-reload", line: "systemctl daemon-reload"},
	{name: "daemon-reexec", line: "systemctl daemon-reexec"},
	{name: "isolate", line: "systemctl isolate multi-user.target"},
	{name: "tmpfiles", line: "systemd-tmpfiles --create --clean --remove"},
	{name: "resolved restarted", line: "systemctl restart systemd-resolved.service"},
	{name: "resolved restarted without its state", line: "systemctl stop systemd-resolved.service; rm -rf /run/systemd/resolve/netif; systemctl start systemd-resolved.service"},
	{name: "resolved killed", line: "kill -9 $(systemctl show --value -p MainPID systemd-resolved.service); sleep 1"},
	{name: "networkd restarted", line: "systemctl restart systemd-networkd.service"},
	{name: "link deleted", line: "ip link del min0"},
	{name: "link down", line: "ip link set min0 down"},
	// A lookup that begins before it is put right waits for a server that is not there, and later ones of the
	// same name with it: not longer than until then.
	{name: "server of the link changed", line: "p=$(systemctl show --value -p MainPID minhost-names.service); kill -STOP $p; " +
		"resolvectl dns min0 198.51.100.77; getent ahostsv4 allow.min.internal >/dev/null 2>&1 & sleep 0.3; kill -CONT $p"},
	{name: "link reverted", line: "resolvectl revert min0"},
	{name: "nftables started", line: "systemctl start nftables.service", within: 2 * time.Second},
	{name: "nftables reloaded", line: "systemctl reload nftables.service", within: 2 * time.Second},
	{name: "nftables stopped", line: "systemctl stop nftables.service", within: 2 * time.Second},
	{name: "table deleted", line: "nft delete table inet minhost", within: 2 * time.Second},
}

// TestBlows: with live boxes, verdicts hold at every moment, boxes and their cgroups stay, and names
// and verify are right again within seconds, without anybody doing anything.
func TestBlows(t *testing.T) {
	h := newHost(t, "bookworm")
	h.boot()
	h.install()
	free := vmlab.TCP(t, 8082)
	open, shut := "open=tcp:"+h.open.Addr(), "shut=tcp:"+h.shut.Addr()
	allow := h.startLive("allow", []string{"--allow", vmlab.Outside + "/32:8080"}, []string{open, shut})
	deny := h.startLive("deny", []string{"--egress", "deny"}, []string{shut})
	beside := h.Start("", vmlab.Program(vmlab.Probe), "free=tcp:"+free.Addr())
	beside.Await("free ok")
	if allow.outcome("open") != "ok" || h.shut.Hits() != 0 {
		t.Fatalf("before anything happened: %s", allow.Stdout())
	}
	for _, b := range blows {
		t.Run(b.name, func(t *testing.T) {
			h.Machine.On(t)
			defer h.Machine.On(h.t)
			h := &host{Machine: h.Machine, t: t, open: h.open, shut: h.shut, names: h.names}
			h.blow(b, allow, deny)
		})
	}
	// One try that takes longer than 250 ms is the machine's doing; a refusal, or more than one, would be ours.
	host := &liveBox{Process: beside}
	if out := host.outage("free", time.Time{}); out > slack {
		t.Errorf("the host itself, %v: %s", out, beside.Stdout())
	}
	for _, c := range host.changes("free") {
		if c.what != "ok" && c.what != "timeout" {
			t.Errorf("the host itself: %s", beside.Stdout())
		}
	}
}

func (h *host) blow(b blow, allow, deny *liveBox) {
	start := time.Now()
	r := h.Try("/bin/sh", "-c", b.line)
	if (r.Status != 0) != b.refuse {
		h.t.Errorf("%v", r)
	}
	named := h.eventually(10*time.Second, "the name of a box", func() bool {
		return strings.HasPrefix(h.Try("getent", "ahostsv4", "allow.min.internal").Stdout, "127.0.64.")
	})
	h.eventually(10*time.Second, "the allowed box reaches what it may", func() bool { return allow.outcome("open") == "ok" })
	h.eventually(10*time.Second, "verify", func() bool { return h.Try(installed, "verify").Status == 0 })
	out := allow.outage("open", start)
	h.t.Logf("names after %v, verify after %v, outage %v", named.Round(time.Millisecond), time.Since(start).Round(time.Millisecond), out)
	if named > 2*time.Second+slack {
		h.t.Errorf("names only after %v", named)
	}
	if out > b.within+slack {
		h.t.Errorf("what is allowed was not reached for %v", out)
	}
	for _, box := range []*liveBox{allow, deny} {
		if box.everOK("shut") {
			h.t.Errorf("a box reached what it must not:\n%s", box.Stdout())
		}
		if box.Ended() {
			h.t.Fatalf("a box ended: %s", box.Stderr())
		}
		if id := h.Inode(box.leaf); id != box.id {
			h.t.Errorf("%s has id %d, had %d", box.leaf, id, box.id)
		}
	}
	if n := h.shut.Hits(); n != 0 {
		h.t.Errorf("%d connections of boxes arrived where none may", n)
	}
	if !h.outerNameResolves() {
		h.t.Error("a name of the outside world does not resolve")
	}
}
