package answerer

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

const forwarderAddr = "127.0.0.1:5399"

const unboundConfig = `server:
  interface: 127.0.0.1@5399
  num-threads: 1
  username: ""
  chroot: ""
  directory: "FOLDER"
  pidfile: ""
  use-syslog: no
  do-daemonize: no
  do-not-query-localhost: no
  module-config: "iterator"
  qname-minimisation: no
  local-zone: "internal." nodefault
remote-control:
  control-enable: no
stub-zone:
  name: "min.internal."
  stub-addr: 127.0.0.1@15353
`

const dnsmasqConfig = "port=5399\nlisten-address=127.0.0.1\nbind-interfaces\nno-resolv\nno-hosts\nuser=\npid-file=\nserver=/min.internal/127.0.0.1#15353\n"

// TestForwarders: resolvers that cache keep a negative answer for as long as our SOA says and no
// longer, and no data for one type says nothing about another.
func TestForwarders(t *testing.T) {
	start(t, "stopped -", "web 127.0.64.9")
	nft(t, `table ip clients {
		chain asked { type filter hook input priority 0; udp dport 15353 counter; tcp dport 15353 counter; }
	}`)
	t.Cleanup(func() { nft(t, "delete table ip clients") })
	for _, c := range []struct{ name, program, config, flag string }{
		{"unbound", "/usr/sbin/unbound", unboundConfig, "-d"},
		{"dnsmasq", "/usr/sbin/dnsmasq", dnsmasqConfig, "-k"},
	} {
		t.Run(c.name, func(t *testing.T) {
			forwarder(t, c.program, c.config, c.flag)
			for _, q := range []struct {
				name  string
				qtype uint16
				code  int
				want  string
			}{
				{"web", dns.TypeAAAA, dns.RcodeSuccess, ""},
				{"web", dns.TypeHTTPS, dns.RcodeSuccess, ""},
				{"web", dns.TypeA, dns.RcodeSuccess, "127.0.64.9"},
				{"stopped", dns.TypeA, dns.RcodeSuccess, ""},
				{"nobody", dns.TypeA, dns.RcodeNameError, ""},
			} {
				for _, cached := range []bool{false, true} {
					before := asked(t)
					code, addr, ttl := through(t, q.name, q.qtype)
					if code != q.code || addr != q.want || ttl > 5 {
						t.Errorf("%s %s: code %d, address %q, TTL %d", q.name, dns.TypeToString[q.qtype], code, addr, ttl)
					}
					if q.qtype == dns.TypeHTTPS && c.name == "dnsmasq" {
						continue // it keeps no data of a few types only (2.90)
					}
					if n := asked(t) - before; cached != (n == 0) {
						t.Errorf("%s %s: %d queries came to the answerer, cached: %v", q.name, dns.TypeToString[q.qtype], n, cached)
					}
				}
			}
			time.Sleep(6 * time.Second) // the SOA says 5
			before := asked(t)
			through(t, "nobody", dns.TypeA)
			if asked(t) == before {
				t.Error("the negative answer is kept longer than our SOA says")
			}
		})
	}
}

// forwarder runs a resolver until the test ends.
func forwarder(t *testing.T, program, config, flag string) {
	t.Helper()
	if _, err := os.Stat(program); err != nil {
		t.Skipf("no %s here", program)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "conf")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(config, "FOLDER", dir)), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{flag, "-c", path}
	if strings.HasSuffix(program, "dnsmasq") {
		args = []string{flag, "-C", path}
	}
	cmd := exec.Command(program, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	rig.Eventually(t, 15*time.Second, program+" answers", func() bool {
		_, _, err := new(dns.Client).Exchange(new(dns.Msg).SetQuestion("minhost.min.internal.", dns.TypeA), forwarderAddr)
		return err == nil
	})
}

// through asks the forwarder: code, the address if any, and the longest TTL.
func through(t *testing.T, name string, qtype uint16) (code int, addr string, ttl uint32) {
	t.Helper()
	client := &dns.Client{Timeout: 10 * time.Second}
	reply, _, err := client.Exchange(new(dns.Msg).SetQuestion(name+".min.internal.", qtype), forwarderAddr)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, rr := range append(reply.Answer, reply.Ns...) {
		ttl = max(ttl, rr.Header().Ttl)
		if a, ok := rr.(*dns.A); ok {
			addr = a.A.String()
		}
	}
	return reply.Rcode, addr, ttl
}
