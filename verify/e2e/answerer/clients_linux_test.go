package answerer

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/netlab"
)

// client is a program that looks names up.
type client struct {
	name    string
	queries int  // that one lookup takes, if no answer is asked for a second time
	timed   bool // it says how long a lookup took
	lookup  func(t testing.TB, name string) string
}

func clients(t testing.TB) []client {
	return []client{
		{"dig", 1, false, tool("/usr/bin/dig", "+short", "+tries=2", "+time=5", "@127.0.0.1")},
		{"dig HTTPS", 1, false, tool("/usr/bin/dig", "+short", "+tries=2", "+time=5", "@127.0.0.1", "HTTPS")},
		{"delv", 1, false, tool("/usr/bin/delv", "-i", "+short", "@127.0.0.1", "-t", "A", "-q")},
		{"kdig", 1, false, tool("/usr/bin/kdig", "+short", "+retry=1", "+timeout=5", "@127.0.0.1")},
		{"drill", 1, false, tool("/usr/bin/drill", "-Q", "@127.0.0.1", "A")},
		{"getent", 2, false, tool("/usr/bin/getent", "ahosts")},
		{"glibc", 2, true, compiled(t, "/usr/bin/gcc", inC)},
		{"musl", 2, true, compiled(t, "/usr/bin/musl-gcc", inC)},
		{"python", 2, true, tool("/usr/bin/python3", "-c", python)},
		{"node", 2, true, tool("/usr/bin/node", "-e", node)},
		{"node c-ares", 1, false, tool("/usr/bin/node", "-e", cares)},
		{"java", 2, true, tool("/usr/bin/java", "-XX:TieredStopAtLevel=1", program(t, "Lookup.java", java))},
		{"go", 2, true, func(t testing.TB, name string) string { return netlab.InLeaf(t, netlab.NoLeaf, "go-lookup", name) }},
	}
}

// lookups are names with the address that each has.
var lookups = []struct{ name, address string }{{"web", "127.0.64.9"}, {"stopped", ""}, {"nobody", ""}, {"host", "127.0.0.1"}}

// startAsked runs the answerer where every program asks it, and counts what comes to it.
func startAsked(t testing.TB) {
	t.Helper()
	start(t, "stopped -", "web 127.0.64.9")
	for path, text := range map[string]string{
		"/etc/resolv.conf":   "nameserver 127.0.0.1\noptions attempts:2 timeout:5\n",
		"/etc/nsswitch.conf": "hosts: files dns\n",
		"/etc/hosts":         "127.0.0.1 localhost\n",
	} {
		_ = os.Remove(path) // it may be a link
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	nft(t, `table ip clients {
		chain out { type nat hook output priority 0; udp dport 53 redirect to :15353; tcp dport 53 redirect to :15353; }
		chain asked { type filter hook input priority 0; udp dport 15353 counter; tcp dport 15353 counter; }
	}`)
	t.Cleanup(func() { nft(t, "delete table ip clients") })
}

// TestRealClients: lookups of a held, a stopped and an unknown name by every resolver end at once,
// right, and with as many queries as it has to ask: one for each address family. So none was asked
// again, over TCP or without EDNS, which is what resolvers do with an answer that they do not like.
func TestRealClients(t *testing.T) {
	startAsked(t)
	for _, c := range clients(t) {
		t.Run(c.name, func(t *testing.T) {
			for _, l := range lookups {
				want := l.address
				if c.name == "dig HTTPS" {
					want = ""
				}
				before := asked(t)
				began := time.Now()
				got := c.lookup(t, l.name+".min.internal")
				took := time.Since(began)
				if found := strings.Join(addresses.FindAllString(got, -1), " "); found != want && !(want != "" && onlyOf(found, want)) {
					t.Errorf("%s: %q, want %q", l.name, got, want)
				}
				if n := asked(t) - before; n != c.queries {
					t.Errorf("%s: %d queries, want %d", l.name, n, c.queries)
				}
				// The shortest time after which any of them asks again is 5 s, musl's 2.5. Java starts in seconds.
				if took > 4*time.Second && c.name != "java" {
					t.Errorf("%s took %v", l.name, took)
				}
			}
		})
	}
}

// BenchmarkLookup is what a lookup of any address family takes: of each kind of name and by each resolver
// less than 20 ms at the median of five, without the start of its program.
func BenchmarkLookup(b *testing.B) {
	startAsked(b)
	for _, c := range clients(b) {
		if !c.timed {
			continue
		}
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				for _, l := range lookups {
					var all []float64
					for range 5 {
						all = append(all, timed(b, c.lookup(b, l.name+".min.internal")))
					}
					slices.Sort(all)
					b.ReportMetric(all[2], "ms-"+l.name)
					if all[2] > 20 {
						b.Errorf("%s: a lookup of %s takes %v ms at the median, at most 20", c.name, l.name, all[2])
					}
				}
			}
		})
	}
}

var taken = regexp.MustCompile(`(?m)^T (\d+)$`)

// timed is how many milliseconds a lookup took by its own clock.
func timed(t testing.TB, said string) float64 {
	t.Helper()
	m := taken.FindStringSubmatch(said)
	if m == nil {
		t.Fatalf("no time in %q", said)
	}
	us, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return float64(us) / 1000
}

var addresses = regexp.MustCompile(`\b127\.\d+\.\d+\.\d+\b|\b[0-9a-f:]*::[0-9a-f:]*`)

// onlyOf tells whether found is want, however often.
func onlyOf(found, want string) bool {
	return strings.TrimSpace(strings.ReplaceAll(found, want, "")) == ""
}

// tool runs an installed program with the name as its last argument.
func tool(path string, args ...string) func(testing.TB, string) string {
	return func(t testing.TB, name string) string {
		t.Helper()
		if _, err := os.Stat(path); err != nil {
			t.Skipf("no %s here", path)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		out, err := exec.CommandContext(ctx, path, append(args[:len(args):len(args)], name)...).CombinedOutput()
		var status *exec.ExitError
		if err != nil && !errors.As(err, &status) { // some say by their status that there is no such name
			t.Fatalf("%s: %v", path, err)
		}
		return string(out)
	}
}

// program writes a file for an interpreter and returns its path.
func program(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// compiled makes a C program; without its compiler lookups by it are left out.
func compiled(t testing.TB, compiler, source string) func(testing.TB, string) string {
	t.Helper()
	if _, err := os.Stat(compiler); err != nil {
		return tool(compiler)
	}
	path := filepath.Join(t.TempDir(), "lookup")
	cmd := exec.CommandContext(t.Context(), compiler, "-x", "c", "-o", path, "-")
	cmd.Stdin = strings.NewReader(source)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, out)
	}
	return tool(path)
}

var packets = regexp.MustCompile(`counter packets (\d+)`)

// asked is how many packets came to the answerer so far.
func asked(t testing.TB) (n int) {
	t.Helper()
	for _, m := range packets.FindAllStringSubmatch(nft(t, "list table ip clients"), -1) {
		k, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		n += k
	}
	return n
}
