package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// known are reports from the field of what name servers for local names got wrong, and the tests
// that hold ours to the right thing. Where no test can, the last column says why.
var known = []struct {
	id, report, source string
	tests              []string // "folder TestName"
	why                string
}{
	{"B80", "NXDOMAIN for AAAA of a name that has an A breaks musl and poisons caches",
		"pi-hole/FTL#3039, docker/for-mac#5088, slackhq/nebula#1668",
		[]string{"verify/dnsconf everyType", "resolverd TestAnswers", "verify/e2e/answerer TestRealClients"}, ""},
	{"B81", "REFUSED, SERVFAIL, NOTIMP or silence for AAAA costs seconds",
		"openziti/ziti#3077, avahi/nss-mdns#79",
		[]string{"resolverd FuzzAnswer", "resolverd TestZoneIsWhole", "verify/e2e/answerer TestRealClients", "verify/vmlab/hosts TestResolvedAsks"},
		"a box that asks more than 2,000 times a second is refused by the table at once, not with one of these codes"},
	{"B82", "negative answers without SOA stall every lookup of a Mac and are not cached elsewhere",
		"hashicorp/consul#1217, d2iq-archive/mesos-dns#57, barrucadu/resolved#263",
		[]string{"resolverd FuzzAnswer", "verify/dnsconf TestOurs", "resolverd/probe TestCheck"},
		"that mDNSResponder does not stall needs a Mac; a truncated reply carries no record at all, so no half of a negative, and is asked again over TCP"},
	{"B84", "clients keep negatives longer than DNS says",
		"virtualcell/vcell#1684, jboss-openshift/cct_module#385",
		[]string{"verify/e2e/answerer TestFirstLookup", "verify/e2e/answerer TestForwarders"},
		"the answerer says 5 s and can say no more: a program's first lookup finds its box's name, and who asked before the box was planned may know it 5 s later, a JVM 10 s"},
	{"B85", "queries of type HTTPS and SVCB are answered elsewhere or NXDOMAIN",
		"firezone/firezone#7141, pi-hole/pi-hole#4935, TechnitiumSoftware/DnsServer#1325",
		[]string{"resolverd TestAnswers", "verify/dnsconf TestOurs", "verify/e2e/answerer TestRealClients"}, ""},
	{"B88", "replies without the question, panics and replies to odd messages",
		"miekg/dns#351",
		[]string{"resolverd TestOddMessages", "resolverd FuzzAnswer", "resolverd FuzzFastSlow", "resolverd TestSilence", "verify/dnsconf TestOurs"}, ""},
	{"B89", "FORMERR to OPT, or no OPT back: Go programs and resolved give up or ask twice",
		"systemd/systemd#11849, systemd/systemd#17420, dnsimple/erldns#199",
		[]string{"resolverd TestAnswers", "resolverd TestOddMessages", "verify/dnsconf TestOurs", "verify/vmlab/hosts TestResolvedAsks"}, ""},
	{"B93", "a reply with control data re-binds the socket to every address on macOS",
		"miekg/dns#941, 0xERR0R/blocky#921",
		[]string{"resolverd/datagram TestEcho", "resolverd TestForeignPeer"},
		"there Plain serves, which has no control data to send; that the socket stays where it is bound needs a Mac to see"},
	{"B94", "port 53 of a Mac belongs to others",
		"DNSCrypt/dnscrypt-proxy#451, apple/container#402",
		[]string{"resolverd TestPortTaken", "resolverd/portholder TestFind"}, ""},
	{"B97", "the public root says that .internal does not exist, signed",
		"SSAC 113",
		[]string{"resolverd TestAnswers"},
		"no DNSSEC record is ever given, which the cases with DO hold; that a lookup never came to us is told by the counters and by minhost watch --dns, which who explains the failure must read"},
}

// TestKnown holds that the tests named above are there.
func TestKnown(t *testing.T) {
	for _, k := range known {
		if len(k.tests) == 0 && k.why == "" {
			t.Errorf("%s (%s): neither a test nor a reason", k.id, k.report)
		}
		for _, test := range k.tests {
			folder, name, _ := strings.Cut(test, " ")
			files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(folder), "*.go"))
			if err != nil || len(files) == 0 {
				t.Errorf("%s: no folder %s: %v", k.id, folder, err)
			}
			found := false
			for _, f := range files {
				text, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				found = found || regexp.MustCompile(`(?m)^func `+name+`\(`).Match(text)
			}
			if !found {
				t.Errorf("%s: no %s in %s", k.id, name, folder)
			}
		}
	}
}
