package portholder

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// command shows who has a port. As root it names every program.
func command(network string, port uint16) string {
	return fmt.Sprintf("ss -nlp --%s 'sport = :%d'", network, port)
}

// Find looks for the socket of a network ("udp", "tcp") that is in the way of binding addr: one that
// is bound to it, or to the port of every address.
func Find(network string, addr netip.AddrPort) (Holder, bool) {
	for _, family := range []string{"", "6"} {
		text, err := os.ReadFile("/proc/net/" + network + family)
		if err != nil {
			continue // no IPv6 here
		}
		for line := range strings.Lines(string(text)) {
			s, ok := parseLine(line)
			if !ok || network == "tcp" && s.state != listening || !inTheWay(s.local, addr) {
				continue
			}
			h := Holder{UID: s.uid}
			h.PID, h.Program = process(s.inode)
			return h, true
		}
	}
	return Holder{}, false
}

// listening is TCP_LISTEN of include/net/tcp_states.h.
const listening = "0A"

// entry is a line of /proc/net/udp, tcp, udp6 or tcp6.
type entry struct {
	local netip.AddrPort
	state string
	uid   uint32
	inode string
}

// parseLine reads "sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode ...".
func parseLine(line string) (entry, bool) {
	fields := strings.Fields(line)
	if len(fields) < 10 {
		return entry{}, false
	}
	local, ok := parseAddr(fields[1])
	uid, err := strconv.ParseUint(fields[7], 10, 32)
	return entry{local, fields[3], uint32(uid), fields[9]}, ok && err == nil && fields[9] != "0"
}

// parseAddr reads "0100007F:3BF9": groups of four octets in the machine's order, the port as a number.
func parseAddr(text string) (netip.AddrPort, bool) {
	addr, port, found := strings.Cut(text, ":")
	octets, err := hex.DecodeString(addr)
	number, err2 := strconv.ParseUint(port, 16, 16)
	if !found || err != nil || err2 != nil || len(octets)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(octets); i += 4 {
		binary.BigEndian.PutUint32(octets[i:], binary.NativeEndian.Uint32(octets[i:]))
	}
	ip, ok := netip.AddrFromSlice(octets)
	return netip.AddrPortFrom(ip.Unmap(), uint16(number)), ok
}

// inTheWay tells whether a bound socket keeps addr from being bound. One on [::] mostly takes IPv4
// too; where it does not, it is not asked for, for then there was no error.
func inTheWay(bound, addr netip.AddrPort) bool {
	if bound.Port() != addr.Port() {
		return false
	}
	return bound.Addr() == addr.Addr() || bound.Addr() == netip.IPv6Unspecified() ||
		bound.Addr() == netip.IPv4Unspecified() && addr.Addr().Is4()
}

// process finds one that has the socket open, 0 when it is none that we may look into.
func process(inode string) (pid int, program string) {
	want := "socket:[" + inode + "]"
	folders, err := filepath.Glob("/proc/[0-9]*/fd")
	if err != nil {
		return 0, ""
	}
	for _, folder := range folders {
		descriptors, err := os.ReadDir(folder)
		if err != nil {
			continue // another user's, or it has ended
		}
		for _, d := range descriptors {
			if target, err := os.Readlink(filepath.Join(folder, d.Name())); err != nil || target != want {
				continue
			}
			of := filepath.Dir(folder)
			if pid, err = strconv.Atoi(filepath.Base(of)); err != nil {
				return 0, ""
			}
			name, _ := os.ReadFile(filepath.Join(of, "comm"))
			return pid, printable(strings.TrimSpace(string(name)))
		}
	}
	return 0, ""
}

// printable quotes a name unless it is plain: a program chooses its own.
func printable(name string) string {
	quoted := strconv.QuoteToASCII(name)
	if quoted == `"`+name+`"` && name != "" {
		return name
	}
	return quoted
}
