package nfttest

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/linux/nft"
	"github.com/gominimal/minhost/verify/netlab"
)

// TestForgedMark: root in a deny-all box puts our bits and the lease numbers of others on its own packets, by
// control data, which the belt does not see. The table judges by the cgroup: nothing arrives, here, in another
// box that a rule would let it reach, or on another host; with the belt and without it.
func TestForgedMark(t *testing.T) {
	for _, belt := range []bool{true, false} {
		t.Run(map[bool]string{true: "with belt", false: "table alone"}[belt], func(t *testing.T) {
			l := newLab(t)
			if belt {
				l.belt()
			}
			o := newOutside(l)
			here := udp(t, 8002)
			var away int
			o.do(func() { away = udp(t, 8002) })
			inside := l.box(openEgress())
			inside.From = []uint16{2}
			l.must(l.table.Put(l.ctx(), inside.Verdict))
			forger := l.box(deny())
			sibling := netlab.Start(t, netlab.Spawn{Leaf: inside.FD()}, "hear", "6100")
			sibling.Line()
			out := netlab.InLeaf(t, forger.FD(), "forge", "127.0.0.1:8002", inside.Address.String()+":6100", o.far()+":8002", "127.0.0.1:6100")
			if n, err := strconv.Atoi(out[:len(out)-1]); err != nil || n < 100 {
				t.Errorf("%s datagrams tried", out)
			}
			if n := drain(here); n != 0 {
				t.Errorf("%d datagrams to this host", n)
			}
			if n := drain(away); n != 0 {
				t.Errorf("%d datagrams to another host", n)
			}
			if line := sibling.Line(); line != "nothing" {
				t.Errorf("another box hears %q", line)
			}
		})
	}
}

// forgeChild sends datagrams to each address, one with every combination of our bits and with lease numbers 0, 1
// and 2, and prints how many it tried.
func forgeChild(args []string) int {
	m := nft.DefaultMarks()
	bits := []uint32{m.Belt, m.Lease, m.Host, m.Ingress, m.Foreign, m.Flow}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return 1
	}
	tried := 0
	for _, a := range args {
		to := netip.MustParseAddrPort(a)
		for set := range 1 << len(bits) {
			for number := range uint32(3) {
				mark := number
				for i, b := range bits {
					if set&(1<<i) != 0 {
						mark |= b
					}
				}
				b := make([]byte, unix.CmsgSpace(4))
				h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
				h.Level, h.Type = unix.SOL_SOCKET, unix.SO_MARK
				h.SetLen(unix.CmsgLen(4))
				binary.NativeEndian.PutUint32(b[unix.CmsgLen(0):], mark)
				unix.Sendmsg(fd, []byte("forged"), b, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}, 0)
				tried++
			}
		}
	}
	fmt.Println(tried)
	return 0
}
