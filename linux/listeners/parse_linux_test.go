package listeners

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// message is one struct inet_diag_msg with a cgroup attribute.
func message(family uint8, addr []byte, port uint16, cgroup uint64) []byte {
	b := make([]byte, diagMessage)
	b[0] = family
	binary.BigEndian.PutUint16(b[4:], port)
	copy(b[8:], addr)
	b = binary.NativeEndian.AppendUint16(b, 12)
	b = binary.NativeEndian.AppendUint16(b, diagCgroup)
	return binary.NativeEndian.AppendUint64(b, cgroup)
}

// What the kernel says of a socket is read as it is; what is cut short or not bound is no listener.
func TestParse(t *testing.T) {
	v4 := message(unix.AF_INET, []byte{127, 0, 64, 5}, 3000, 77)
	mapped := message(unix.AF_INET6, append(make([]byte, 10), 0xff, 0xff, 127, 0, 64, 6), 80, 78)
	for name, c := range map[string]struct {
		data []byte
		want Socket
		ok   bool
	}{
		"IPv4":           {v4, Socket{Local: netip.MustParseAddrPort("127.0.64.5:3000"), Cgroup: 77}, true},
		"mapped":         {mapped, Socket{Local: netip.MustParseAddrPort("127.0.64.6:80"), Cgroup: 78}, true},
		"wildcard":       {message(unix.AF_INET6, nil, 53, 1), Socket{Local: netip.MustParseAddrPort("[::]:53"), Cgroup: 1}, true},
		"no port":        {message(unix.AF_INET, nil, 0, 1), Socket{}, false},
		"no cgroup":      {v4[:diagMessage], Socket{Local: netip.MustParseAddrPort("127.0.64.5:3000")}, true},
		"short":          {v4[:diagMessage-1], Socket{}, false},
		"half attribute": {v4[:len(v4)-3], Socket{}, false},
	} {
		got, ok := parse(c.data, false)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
	if s, ok := parse(v4, true); !ok || !s.UDP {
		t.Errorf("udp: %+v, %v", s, ok)
	}
}
