package nft

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
)

func TestParsePacket(t *testing.T) {
	v4 := "450000280000000040%s0000c0a80001c0000207" // %s: protocol
	v6 := "6000000000%s%s40" + strings.Repeat("00", 15) + "01" + "20010db8" + strings.Repeat("00", 11) + "07"
	with := func(format string, args ...string) string {
		for _, a := range args {
			format = strings.Replace(format, "%s", a, 1)
		}
		return format
	}
	for name, c := range map[string]struct {
		hex, protocol, to string
	}{
		"tcp":                     {with(v4, "06") + "303901bb", "tcp", "192.0.2.7:443"},
		"udp":                     {with(v4, "11") + "30390035", "udp", "192.0.2.7:53"},
		"icmp":                    {with(v4, "01") + "08000000", "icmp", "192.0.2.7:0"},
		"sctp":                    {with(v4, "84") + "303901bb", "132", "192.0.2.7:0"},
		"options":                 {"46" + with(v4, "06")[2:] + "00000000" + "303901bb", "tcp", "192.0.2.7:443"},
		"later fragment":          {strings.Replace(with(v4, "11"), "0000000040", "0000000140", 1) + "30390035", "udp", "192.0.2.7:0"},
		"short":                   {with(v4, "06") + "3039", "tcp", "192.0.2.7:0"},
		"tcp6":                    {with(v6, "08", "06") + "303901bb", "tcp", "[2001:db8::7]:443"},
		"icmp6":                   {with(v6, "08", "3a") + "80000000", "icmp", "[2001:db8::7]:0"},
		"hop-by-hop then udp":     {with(v6, "10", "00") + "1100000000000000" + "30390035", "udp", "[2001:db8::7]:53"},
		"routing then tcp":        {with(v6, "10", "2b") + "0601000000000000" + "0000000000000000" + "303901bb", "tcp", "[2001:db8::7]:443"},
		"first fragment":          {with(v6, "10", "2c") + "1100000100000000" + "30390035", "udp", "[2001:db8::7]:53"},
		"later fragment, v6":      {with(v6, "10", "2c") + "1100000800000000" + "30390035", "udp", "[2001:db8::7]:0"},
		"extension header is cut": {with(v6, "10", "00") + "11ff000000000000", "0", "[2001:db8::7]:0"},
		"neither":                 {"20" + with(v4, "06")[2:], "", ""},
		"nothing":                 {"", "", ""},
		"cut in the header":       {with(v6, "08", "06")[:60], "", ""},
	} {
		b, err := hex.DecodeString(c.hex)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		protocol, to, ok := parsePacket(b)
		if c.to == "" {
			if ok {
				t.Errorf("%s: %s %v", name, protocol, to)
			}
			continue
		}
		if !ok || protocol != c.protocol || to != netip.MustParseAddrPort(c.to) {
			t.Errorf("%s: %s %v %t, want %s %s", name, protocol, to, ok, c.protocol, c.to)
		}
	}
}

func FuzzParsePacket(f *testing.F) {
	f.Add([]byte{0x60, 5: 8, 6: 43, 47: 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if protocol, to, ok := parsePacket(b); ok && (protocol == "" || !to.IsValid()) {
			t.Errorf("%q %v", protocol, to)
		}
	})
}
