package belttest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

// marking makes a rule write a mark on what goes to (dport) or comes from (sport) the port of an address, until the
// test ends or it is called again for that port. A process in a box cannot set our bits itself.
func marking(t testing.TB, side, address string, mark uint32) {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	table := "marking" + port
	text := fmt.Sprintf("add table inet %s\ndelete table inet %s\nadd table inet %s\nadd chain inet %s o { type filter hook output priority 0; }\nadd rule inet %s o th %s %s meta mark set %#x\n",
		table, table, table, table, table, side, port, mark)
	c := exec.Command("nft", "-f", "-")
	c.Stdin = strings.NewReader(text)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("nft: %v: %s", err, out)
	}
	t.Cleanup(func() { exec.Command("nft", "delete", "table", "inet", table).Run() })
}

// TestNoMarkOfOurs: no process in a box sets a mark with a bit of ours, root as little as others, on no kind of
// socket, not while another thread changes the value. Other marks are the box's own.
func TestNoMarkOfOurs(t *testing.T) {
	leaf, _ := worn(t)
	c := config(t)
	ask := func(fd int) (out map[string]string) {
		if err := json.Unmarshal([]byte(netlab.InLeaf(t, fd, "marks")), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	in, out := ask(leaf.FD()), ask(netlab.NoLeaf)
	for key, got := range out {
		if want := map[bool]string{true: "raced", false: "ok"}[strings.HasSuffix(key, "raced")]; got != want {
			t.Errorf("outside, %s: %s", key, got)
		}
	}
	if len(in) != len(out) || len(in) < 20 {
		t.Errorf("%d cases", len(in))
	}
	for key, got := range in {
		want := "EPERM"
		for _, free := range []uint32{0, 0x1, 0x00ff0000, ^(c.Approve | c.Lease | c.Admit | c.Host | c.Foreign)} {
			if strings.HasSuffix(key, fmt.Sprintf(" %#x", free)) {
				want = "ok"
			}
		}
		if strings.HasSuffix(key, "raced") {
			want = "kept"
		}
		if got != want {
			t.Errorf("leaf, %s: %s, want %s", key, got, want)
		}
	}
}

// marksChild sets marks on sockets of all kinds and prints how each went.
func marksChild([]string) int {
	out := map[string]string{}
	for name, kind := range map[string][3]int{
		"udp": {unix.AF_INET, unix.SOCK_DGRAM, 0}, "udp6": {unix.AF_INET6, unix.SOCK_DGRAM, 0}, "tcp": {unix.AF_INET, unix.SOCK_STREAM, 0},
		"raw": {unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, "mptcp": {unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP},
	} {
		fd, err := unix.Socket(kind[0], kind[1], kind[2])
		if err != nil {
			continue // a kernel without MPTCP
		}
		for _, mark := range []uint32{0, 0x1, 0x00ff0000, approve, lease, admit, 0x10000000, 0x04000000, approve | 1, ^uint32(0), 0x83ffffff} {
			out[fmt.Sprintf("%s %#x", name, mark)] = errnoName(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, int(mark)))
		}
		out[name+" raced"] = race(fd)
		unix.Close(fd)
	}
	b, _ := json.Marshal(out)
	fmt.Println(string(b))
	return 0
}

func errnoName(err error) string {
	if err == nil {
		return "ok"
	}
	return unix.ErrnoName(err.(syscall.Errno))
}

// race sets a mark from memory that another thread writes all the time, and says whether ours was ever set.
func race(fd int) string {
	var value atomic.Uint32
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			for range 1000 {
				value.Store(1)
				value.Store(approve)
			}
		}
	}()
	defer func() { close(stop); <-done }()
	for end := time.Now().Add(time.Second / 2); time.Now().Before(end); {
		unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MARK, uintptr(unsafe.Pointer(&value)), 4, 0)
		if got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK); err != nil || got&approve != 0 {
			return "raced"
		}
	}
	return "kept"
}

// TestMarkOfMessage: a mark in a message (SO_MARK as control data) does not pass setsockopt. It takes the same
// capability, which nobody has in a box but root and programs that have it by their files; none of those takes such a
// mark from its caller. What root can do with it while there is no table is stated, not prevented; if a kernel
// stops it, this test is to be turned.
func TestMarkOfMessage(t *testing.T) {
	leaf, _ := worn(t)
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.ListenPacket("udp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for _, c := range []struct {
			uid  uint32
			want string
			came bool
		}{{1000, "EPERM", false}, {0, "ok", true}} {
			out := netlab.Start(t, netlab.Spawn{Leaf: leaf.FD(), UID: c.uid}, "message", l.LocalAddr().String()).Stop()
			l.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			_, _, err := l.ReadFrom(make([]byte, 16))
			if came := err == nil; strings.TrimSpace(out) != c.want || came != c.came {
				t.Errorf("uid %d to %s: %s, arrived %t; want %s, %t", c.uid, address, strings.TrimSpace(out), came, c.want, c.came)
			}
		}
	}
}

// messageChild sends a datagram with an approved mark in its control data.
func messageChild(args []string) int {
	to, err := net.ResolveUDPAddr("udp", args[0])
	if err != nil {
		return 2
	}
	b := make([]byte, unix.CmsgSpace(4))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = unix.SOL_SOCKET, unix.SO_MARK
	h.SetLen(unix.CmsgLen(4))
	binary.NativeEndian.PutUint32(b[unix.CmsgLen(0):], approve|admit)
	if to.IP.To4() == nil {
		fmt.Println(errnoName(unix.Sendmsg(udpSocket(unix.AF_INET6), []byte("x"), b, &unix.SockaddrInet6{Port: to.Port, Addr: [16]byte(to.IP)}, 0)))
		return 0
	}
	fmt.Println(errnoName(unix.Sendmsg(udpSocket(unix.AF_INET), []byte("x"), b, &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())}, 0)))
	return 0
}
