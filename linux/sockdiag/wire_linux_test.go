package sockdiag

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// message is one struct inet_diag_msg with a cgroup attribute.
func message(family uint8, addr []byte, port, to uint16, cgroup uint64) []byte {
	b := make([]byte, messageSize)
	b[0] = family
	binary.BigEndian.PutUint16(b[4:], port)
	binary.BigEndian.PutUint16(b[6:], to)
	copy(b[8:], addr)
	copy(b[24:], addr)
	b = binary.NativeEndian.AppendUint16(b, 12)
	b = binary.NativeEndian.AppendUint16(b, attrCgroup)
	return binary.NativeEndian.AppendUint64(b, cgroup)
}

// TestParse: what the kernel says of a socket is read as it is; what is cut short is an error, no socket.
func TestParse(t *testing.T) {
	v4 := message(unix.AF_INET, []byte{127, 0, 64, 5}, 3000, 0, 77)
	mapped := message(unix.AF_INET6, append(make([]byte, 10), 0xff, 0xff, 127, 0, 64, 6), 80, 81, 78)
	for name, c := range map[string]struct {
		data          []byte
		local, remote string
		cgroup        uint64
	}{
		"IPv4":           {v4, "127.0.64.5:3000", "", 77},
		"mapped":         {mapped, "127.0.64.6:80", "127.0.64.6:81", 78},
		"wildcard":       {message(unix.AF_INET6, nil, 53, 0, 1), "[::]:53", "", 1},
		"not bound":      {message(unix.AF_INET, nil, 0, 0, 1), "0.0.0.0:0", "", 1},
		"no cgroup":      {v4[:messageSize], "127.0.64.5:3000", "", 0},
		"short":          {v4[:messageSize-1], "", "", 0},
		"half attribute": {v4[:len(v4)-3], "", "", 0},
		"odd cgroup":     {append(v4[:messageSize:messageSize], 8, 0, attrCgroup, 0, 1, 2, 3, 4), "", "", 0},
	} {
		got, err := parse(c.data, unix.IPPROTO_UDP)
		if c.local == "" {
			if err == nil {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		var remote netip.AddrPort
		if c.remote != "" {
			remote = netip.MustParseAddrPort(c.remote)
		}
		if err != nil || got.Protocol != unix.IPPROTO_UDP || got.Local != netip.MustParseAddrPort(c.local) || got.Remote != remote || got.Cgroup != c.cgroup {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestRequests: sizes and places as in linux/inet_diag.h.
func TestRequests(t *testing.T) {
	id := [idSize]byte{0: 1, idSize - 1: 2}
	two := request(unix.AF_INET6, unix.IPPROTO_UDP, Listen, id)
	if len(two) != 56 || two[0] != unix.AF_INET6 || two[1] != unix.IPPROTO_UDP || binary.NativeEndian.Uint32(two[4:]) != 1<<10 || [idSize]byte(two[8:]) != id {
		t.Errorf("inet_diag_req_v2 % x", two)
	}
	old := everyTCP(Listen)
	if len(old) != 60 || binary.NativeEndian.Uint32(old[52:]) != 1<<10 {
		t.Errorf("inet_diag_req % x", old)
	}
}
