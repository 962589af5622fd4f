package loopback

import (
	"net/netip"
	"testing"
)

func TestUser(t *testing.T) {
	text := []byte(`Active Internet connections (including servers)
Proto Recv-Q Send-Q  Local Address          Foreign Address        (state)
tcp4       0      0  127.0.64.3.3000        *.*                    LISTEN
tcp4       0      0  127.0.64.30.3000       *.*                    LISTEN
tcp4       0      0  127.0.64.5.3000        127.0.0.1.50000        TIME_WAIT
tcp4       0      0  127.0.0.1.50001        127.0.64.6.80          ESTABLISHED
udp4       0      0  127.0.64.7.53          *.*
`)
	for addr, want := range map[string]string{"127.0.64.3": "tcp4 127.0.64.3.3000", "127.0.64.30": "tcp4 127.0.64.30.3000", "127.0.64.5": "",
		"127.0.64.6": "", "127.0.64.7": "udp4 127.0.64.7.53", "127.0.64.1": ""} {
		if got := user(text, netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %q, want %q", addr, got, want)
		}
	}
}
