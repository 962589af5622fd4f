package strict

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// Offsets in an Ethernet frame with ARP, or with IPv4 without options and UDP.
const (
	etherType              = 12
	arpOp                  = 20
	arpSender              = 22 // hardware address, then the IPv4 one
	arpTarget              = 32
	ipChecksum, ipProtocol = 24, 23
	ipSource, ipTarget     = 26, 30
	udpSource, udpTarget   = 34, 36
	udpChecksum            = 40
)

// tapSwitch is the smallest switch there is: whoever is asked for is its one neighbour, which gives every datagram
// back. A caller at its socket is told so.
func tapSwitch() int {
	tap := os.NewFile(3, "tap")
	fmt.Fprintln(os.Stderr, "switch", os.Getpid(), os.Getenv("MINHOST_TAP_ADDRESS"), os.Getenv("MINHOST_TAP_GATEWAY"), os.Getenv("MINHOST_TAP_MTU"), os.Getenv("MINHOST_LISTEN"))
	if os.Getenv("SWITCH_ENDS") != "" {
		return 3
	}
	signal.Ignore(syscall.SIGINT)
	if os.Getenv("MINHOST_LISTEN") != "" {
		go forward()
	}
	frame := make([]byte, 65536)
	for {
		n, err := tap.Read(frame)
		if err != nil { // the box has ended, and its tap with it
			return 0
		}
		if reply := answer(frame[:n]); reply != nil {
			if _, err := tap.Write(reply); err != nil {
				return 0
			}
		}
	}
}

func forward() {
	f := os.NewFile(4, "socket")
	l, err := net.FileListener(f)
	if err != nil {
		return
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		fmt.Fprintln(c, "the switch")
		c.Close()
	}
}

// answer is nil for what is neither ARP nor UDP over IPv4.
func answer(in []byte) []byte {
	out := append([]byte(nil), in...)
	mac := []byte{2, 0, 0, 0, 0, 1}
	if len(in) < 42 {
		return nil
	}
	copy(out[0:6], in[6:12])
	copy(out[6:12], mac)
	switch binary.BigEndian.Uint16(in[etherType:]) {
	case 0x0806:
		out[arpOp+1] = 2
		copy(out[arpSender:], mac)
		copy(out[arpSender+6:arpSender+10], in[arpTarget+6:arpTarget+10])
		copy(out[arpTarget:arpTarget+10], in[arpSender:arpSender+10])
		return out
	case 0x0800:
		if in[ipProtocol] != 17 {
			return nil
		}
		copy(out[ipSource:], in[ipTarget:ipTarget+4]) // the sum of the header stays the same
		copy(out[ipTarget:], in[ipSource:ipSource+4])
		copy(out[udpSource:], in[udpTarget:udpTarget+2])
		copy(out[udpTarget:], in[udpSource:udpSource+2])
		out[udpChecksum], out[udpChecksum+1] = 0, 0 // none
		return out
	}
	return nil
}

// switchPID takes the number of the switch out of what it said.
func switchPID(stderr string) (pid int) {
	_, rest, _ := strings.Cut(stderr, "switch ")
	fmt.Sscan(rest, &pid)
	return pid
}

// gone says whether a process has ended.
func gone(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(b), ") Z ")
}
