package cells

import (
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/vmlab"
)

const installed = "/usr/local/lib/minhost/minhost"

// TestCells: in each cell minhost is installed, names resolve for every kind of program that can see them there,
// a box is confined, the machine is rebooted and nobody does anything, all is the same, and after the undo the
// machine is as it was.
func TestCells(t *testing.T) {
	done := map[cell]string{}
	for _, c := range all() {
		t.Run(c.String(), func(t *testing.T) {
			start := time.Now()
			h := &host{Machine: vmlab.Prepare(t, c.suite+"-full"), t: t, cell: c, open: vmlab.TCP(t, 8080), shut: vmlab.TCP(t, 8081), names: vmlab.ServeNames(t)}
			prepare(h.Machine, c)
			h.life()
			if !t.Failed() {
				done[c] = "works"
			}
			t.Logf("%v", time.Since(start).Round(time.Second))
		})
	}
	write(t, done)
}

type host struct {
	*vmlab.Machine
	cell
	t          *testing.T
	open, shut *vmlab.Server
	names      *vmlab.Names
}

func (h *host) life() {
	h.Boot()
	h.eventually("a name of the outside world", h.outerName)
	h.eventually("the firewall", func() bool { return up(h.Machine, h.cell) })
	before := h.settledSnapshot()
	h.Must(vmlab.Program(vmlab.Minhost), "finalize-install", "--yes", "--operator", vmlab.Runner)
	h.verify()
	h.use()
	h.Must(installed, "verify", "--before-reboot")
	h.Reboot()
	h.eventually("a name of the outside world after the reboot", h.outerName)
	h.eventually("the firewall after the reboot", func() bool { return up(h.Machine, h.cell) })
	if r := h.Try(installed, "verify", "--after-reboot", "--wait", "20s"); r.Status != 0 {
		h.t.Errorf("%v", r)
	}
	h.verify()
	h.use()
	h.Must(installed, "finalize-install", "--undo", "--yes")
	if diff := vmlab.Diff(stable(before), stable(h.Snapshot())); len(diff) > 0 {
		h.t.Errorf("the machine is not as it was:\n  %s", strings.Join(diff, "\n  "))
	}
	if !h.outerName() {
		h.t.Error("a name of the outside world does not resolve after undo")
	}
	if zone := h.names.Leaked(); len(zone) > 0 && h.resolver == "stub" {
		h.t.Errorf("names of the zone were asked outside: %v", zone)
	}
}

// settledSnapshot waits until two in a row are the same: daemons go on for a moment when the boot is over.
func (h *host) settledSnapshot() []string {
	last := h.Snapshot()
	for range 20 {
		time.Sleep(300 * time.Millisecond)
		now := h.Snapshot()
		if len(vmlab.Diff(last, now)) == 0 {
			return now
		}
		last = now
	}
	return last
}

// stable leaves out what docker makes up anew at each boot: numbers, names of sockets, ports.
func stable(lines []string) []string {
	var out []string
	// NetworkManager's own notes come when it first stops.
	lines = slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
		return strings.HasPrefix(l, "address eth0") || strings.HasPrefix(l, "file /var/lib/NetworkManager/")
	})
	docker := slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "docker0") })
	for _, l := range lines {
		switch {
		case strings.Contains(l, "/run/docker/libnetwork/"), docker && strings.HasPrefix(l, "socket tcp 127.0.0.1:"):
			continue
		case strings.Contains(l, "(docker0)"):
			_, l, _ = strings.Cut(l, "(docker0)")
		case strings.HasPrefix(l, "link docker0:"):
			l, _, _ = strings.Cut(l, "link/ether")
		}
		out = append(out, l)
	}
	return out
}

func (h *host) eventually(what string, holds func() bool) {
	h.t.Helper()
	for end := time.Now().Add(40 * time.Second); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("not within 40 s: %s\n%s", what, h.Try("systemctl", "--no-pager", "--failed").Stdout)
		}
	}
}

func (h *host) outerName() bool {
	return strings.HasPrefix(h.Try("getent", "ahostsv4", "www.example.com").Stdout, vmlab.Outside)
}

// verify wants the host ready, the firewall named, and the truth about names.
func (h *host) verify() {
	h.t.Helper()
	var r vmlab.Result
	h.eventually("verify", func() bool { r = h.Try(installed, "verify"); return r.Status == 0 })
	if want := told[h.firewall]; !strings.Contains(r.Stdout, want) {
		h.t.Errorf("verify does not name %q:\n%s", want, r.Stdout)
	}
	want := map[string]string{
		"stub":         "glibc: yes; static Go programs, musl and dig: yes",
		"without stub": "glibc: yes; static Go programs, musl and dig: no (/etc/resolv.conf names 198.51.100.1 instead of 127.0.0.53",
		"none":         "no program would ask the answerer: systemd-resolved does not run",
	}[h.resolver]
	if !strings.Contains(r.Stdout, want) {
		h.t.Errorf("verify does not say %q:\n%s", want, r.Stdout)
	}
}

// use looks a box up with every kind of program, and tries what boxes may and may not reach.
func (h *host) use() {
	h.t.Helper()
	box := h.Start(vmlab.Runner, installed, "run", "--name", "web", "--egress", "deny", "--", "/bin/sh", "-c",
		"exec "+vmlab.Program(vmlab.Probe)+" http $MINHOST_ADDRESS:8000")
	box.Await("up")
	const name = "web.min.internal"
	for _, p := range []struct {
		kind   string
		direct bool // reads resolv.conf itself
		args   []string
	}{
		{"the answerer", false, []string{"/bin/sh", "-c", "dig +short +timeout=2 @127.0.0.1 -p 15353 " + name}},
		{"glibc", false, []string{"/bin/sh", "-c", "getent ahostsv4 " + name + " | sed -n '1s/ .*//p'"}},
		{"Python", false, []string{"python3", "-c", "import socket; print(socket.gethostbyname('" + name + "'))"}},
		{"curl", false, []string{"curl", "-sS", "-o", "/dev/null", "-w", "%{remote_ip}", "http://" + name + ":8000/"}},
		{"Go", true, []string{vmlab.Program(vmlab.Probe), "lookup", name}},
		{"musl", true, []string{vmlab.Program(vmlab.Musl), name}},
	} {
		sees := p.kind == "the answerer" || h.resolver == "stub" || h.resolver == "without stub" && !p.direct
		if p.kind == "musl" && h.Try("test", "-x", p.args[0]).Status != 0 {
			h.t.Log("no musl-gcc on the machine that made the tests: musl is not tried")
			continue
		}
		if r := h.Try(p.args...); inRange(r.Stdout) != sees {
			h.t.Errorf("%s: the box's address %v, wanted %v: %v", p.kind, inRange(r.Stdout), sees, r)
		}
	}
	if err := box.Stop(syscall.SIGTERM); err != nil {
		h.t.Error(err)
	}
	hits, shut := h.open.Hits(), h.shut.Hits()
	for _, server := range []*vmlab.Server{h.open, h.shut} {
		h.TryAs(vmlab.Runner, installed, "run", "--name", "some", "--allow", vmlab.Outside+"/32:8080", "--",
			"/usr/bin/curl", "-sS", "--http0.9", "-o", "/dev/null", "-m", "2", "telnet://"+server.Addr())
	}
	if h.open.Hits() == hits || h.shut.Hits() != shut {
		h.t.Errorf("a box that may reach one server: %d and %d connections", h.open.Hits()-hits, h.shut.Hits()-shut)
	}
	if !h.outerName() {
		h.t.Error("a name of the outside world does not resolve")
	}
}

func inRange(text string) bool {
	a, err := netip.ParseAddr(strings.TrimSpace(text))
	return err == nil && netip.MustParsePrefix("127.0.64.0/24").Contains(a)
}
