package hosts

import (
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/vmlab"
)

// TestResolvedAsks: a lookup by glibc through systemd-resolved, of a held, a stopped and an unknown name,
// ends at once (6 to 17 ms with the start of getent) and costs the answerer one query for each family.
// Only systemd 252 repeats those for a name that does not exist, as it does with every server, in case it
// is one that says so when it does not know EDNS (systemd/systemd#20119; 257 does not).
func TestResolvedAsks(t *testing.T) {
	for suite, twice := range map[string]int{"bookworm": 4, "trixie": 2} {
		t.Run(suite, func(t *testing.T) {
			h := newHost(t, suite)
			h.boot()
			h.install()
			h.Sh("systemctl stop minhost-helper.socket minhost-helper.service; " +
				`printf 'minhost-zone 1 %s 99 2\nstopped -\nweb 127.0.64.9\n' "$(cat /proc/sys/kernel/random/boot_id)" >/run/minhost/zone.new; ` +
				"mv /run/minhost/zone.new /run/minhost/zone")
			h.eventually(10*time.Second, "the zone is served", func() bool {
				return strings.Contains(h.Try("dig", "+short", "@127.0.0.1", "-p", "15353", "web.min.internal").Stdout, "127.0.64.9")
			})
			h.Sh("nft 'table ip clients { chain asked { type filter hook input priority 0; udp dport 15353 counter; tcp dport 15353 counter; }; }'")
			for _, c := range []struct {
				name, want string
				queries    int
			}{{"web", "127.0.64.9", 2}, {"stopped", "", 2}, {"nobody", "", twice}} {
				before, began := h.asked(), time.Now()
				found, _, _ := strings.Cut(h.Try("getent", "ahosts", c.name+".min.internal").Stdout, " ")
				took := time.Since(began)
				n := h.asked() - before
				t.Logf("%s: %d queries, %v", c.name, n, took.Round(time.Millisecond))
				if found != c.want || n != c.queries {
					t.Errorf("%s: %q with %d queries, want %q with %d", c.name, found, n, c.want, c.queries)
				}
				if took > 4*time.Second { // resolved asks again after 5 s
					t.Errorf("%s took %v", c.name, took)
				}
			}
			if s := h.Try("resolvectl", "--no-pager", "status", "min0").Stdout; !strings.Contains(s, "~min.internal") {
				t.Errorf("the lookups did not go by the link: %s", s)
			}
			for line := range strings.Lines(h.Sh("journalctl -b -o cat -u systemd-resolved.service").Stdout) {
				if strings.Contains(line, "degraded feature set") && strings.Contains(line, "127.0.0.1") {
					t.Errorf("resolved takes the answerer for one that knows less than it does: %s", line)
				}
			}
		})
	}
}

var counted = regexp.MustCompile(`counter packets (\d+)`)

// asked is how many packets came to the answerer so far.
func (h *host) asked() (n int) {
	h.t.Helper()
	for _, m := range counted.FindAllStringSubmatch(h.Must("nft", "list", "table", "ip", "clients").Stdout, -1) {
		k, err := strconv.Atoi(m[1])
		if err != nil {
			h.t.Fatal(err)
		}
		n += k
	}
	return n
}

// TestLookupsUnderSystemd: the answerer has no right to ask for marks there, so the helper finds the box of
// a lookup by its flow; its owner sees it, and not what the host asked.
func TestLookupsUnderSystemd(t *testing.T) {
	h := newHost(t, "bookworm")
	h.boot()
	h.install()
	watch := h.Start(vmlab.Runner, installed, "watch", "--dns")
	h.Start(vmlab.Runner, installed, "run", "--name", "live", "--egress", "deny", "--", "/bin/sh", "-c",
		"while :; do dig +tries=1 @192.0.2.1 example.com AAAA; dig +tcp +tries=1 @192.0.2.1 example.net; sleep 0.2; done")
	for _, want := range []string{"  lookup    live  AAAA example.com: outside (udp, ", "  lookup    live  A example.net: outside (tcp, "} {
		h.eventually(20*time.Second, "the owner sees "+want, func() bool {
			h.Try("getent", "ahosts", "of-the-host.min.internal")
			return strings.Contains(watch.Stdout(), want)
		})
	}
	if strings.Contains(watch.Stdout(), "of-the-host") {
		t.Errorf("the owner of a box sees the host's lookups:\n%s", watch.Stdout())
	}
	if err := watch.Stop(syscall.SIGINT); err != nil {
		t.Log(err) // its exit status
	}
	h.eventually(10*time.Second, "nobody is told any more", func() bool { return h.Try("test", "-e", "/run/minhost/lookups").Status != 0 })
}
