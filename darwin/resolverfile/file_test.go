package resolverfile

import (
	"net/netip"
	"os"
	"strings"
	"testing"
)

var zone = Zone{"min.internal", netip.MustParseAddrPort("127.0.0.1:15353")}

func TestRender(t *testing.T) {
	text := string(Render(zone))
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != 5 || lines[0] != Marker || lines[2] != "nameserver 127.0.0.1" || lines[3] != "port 15353" || lines[4] != "flags a aaaa" {
		t.Errorf("%q", lines)
	}
	if faults := Faults([]byte(text), zone); len(faults) > 0 || !Ours([]byte(text)) {
		t.Errorf("faults %q, ours %v", faults, Ours([]byte(text)))
	}
}

// TestOurs: an older version's file is ours, an edited one is not.
func TestOurs(t *testing.T) {
	old := Render(Zone{"min.internal", netip.MustParseAddrPort("127.0.0.1:10053")})
	if !Ours(old) {
		t.Error("the file of another version is not known")
	}
	for name, text := range map[string]string{
		"edited":     strings.Replace(string(old), "10053", "15353", 1),
		"appended":   string(old) + "timeout 1\n",
		"no marker":  "nameserver 127.0.0.1\nport 15353\n",
		"no sum":     Marker + "\nnameserver 127.0.0.1\n",
		"CRLF":       strings.ReplaceAll(string(old), "\n", "\r\n"),
		"marker 2nd": "# x\n" + string(old),
		"empty":      "",
	} {
		if Ours([]byte(text)) {
			t.Errorf("%s: taken for ours", name)
		}
	}
}

func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		"nameserver 127.0.0.1\r\nport 15353\r\n":  "CR LF",
		"nameserver  127.0.0.1\nport 15353\n":     "blanks",
		"nameserver\t127.0.0.1\nport 15353\n":     "blanks",
		"nameserver 127.0.0.1\nport 5353\n":       "mDNSResponder's own",
		"nameserver 127.0.0.1\n":                  "no port",
		"nameserver 127.0.0.1\nport 53\n":         "the port is 53",
		"nameserver 192.168.1.1\nport 15353\n":    "192.168.1.1",
		"# nameserver 127.0.0.1\n; port 15353\n":  "name server",
		"nameserver 127.0.0.1\nport 15353 \n":     "blanks",
		"nameserver 127.0.0.1\nport 15353\n\n# x": "",
	} {
		got := strings.Join(Faults([]byte(text), zone), "; ")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestScutil(t *testing.T) {
	for name, want := range map[string]bool{"scutil-dns-01-ok.txt": true, "scutil-dns-02-trap-no-port-and-lookalike.txt": false} {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		ok, conflicts := zone.shown(ParseScutil(b))
		if ok != want || want == (len(conflicts) > 0) {
			t.Errorf("%s: %v, conflicts %q", name, ok, conflicts)
		}
	}
	// The second list does not count.
	scoped := "DNS configuration\n\nresolver #1\n  nameserver[0] : 1.1.1.1\n\nDNS configuration (for scoped queries)\n\n" +
		"resolver #1\n  domain   : min.internal\n  nameserver[0] : 127.0.0.1\n  port     : 15353\n"
	if ok, _ := zone.shown(ParseScutil([]byte(scoped))); ok {
		t.Error("a scoped resolver is taken for one that plain lookups ask")
	}
	two := "resolver #1\n  domain   : min.internal\n  nameserver[0] : 127.0.0.1\n  nameserver[1] : 8.8.8.8\n  port     : 15353\n"
	if ok, _ := zone.shown(ParseScutil([]byte(two))); ok {
		t.Error("a second server is overlooked")
	}
}
