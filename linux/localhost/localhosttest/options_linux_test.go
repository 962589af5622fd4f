package localhosttest

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const protocolUDPLite = 136

// others are sockets that are neither TCP nor UDP: type and protocol.
func others() map[string][2]int {
	return map[string][2]int{"udplite4": {unix.SOCK_DGRAM, protocolUDPLite}, "ping4": {unix.SOCK_DGRAM, unix.IPPROTO_ICMP}, "raw4": {unix.SOCK_RAW, 253}}
}

// option does "NAME freebind|transparent|lo|six-only|mixed|tell", "NAME disconnect", "NAME sendas SOURCE
// ADDRESS:PORT", "NAME segments ADDRESS:PORT" (two datagrams at once), "NAME zerocopy ADDRESS:PORT",
// "NAME fastopen ADDRESS:PORT" (data in a
// SYN) and "NAME message" (from whom, and to which address).
func (s acts) option(name, verb, arg string) string {
	fd := s[name]
	switch verb {
	case "freebind":
		return errno(unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_FREEBIND, 1))
	case "transparent":
		return errno(unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_TRANSPARENT, 1))
	case "lo":
		return errno(unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE, "lo"))
	case "six-only":
		return errno(unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_V6ONLY, 1))
	case "mixed":
		return errno(unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_V6ONLY, 0))
	case "tell":
		return errno(unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_PKTINFO, 1))
	case "disconnect":
		var unspec unix.RawSockaddrInet4 // family 0
		_, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&unspec)), unsafe.Sizeof(unspec))
		if e != 0 {
			return errno(e)
		}
		return "ok"
	case "sendas":
		source, to, _ := strings.Cut(arg, " ")
		return errno(unix.Sendmsg(fd, []byte("x"), sourceOf(fd, source), endpoint(to), 0))
	case "segments":
		size := binary.NativeEndian.AppendUint16(nil, 1)
		return errno(unix.Sendmsg(fd, []byte("xy"), control(unix.SOL_UDP, unix.UDP_SEGMENT, size), endpoint(arg), 0))
	case "zerocopy":
		err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ZEROCOPY, 1)
		if err == nil {
			err = unix.Sendto(fd, []byte("x"), unix.MSG_ZEROCOPY, endpoint(arg))
		}
		return errno(err)
	case "fastopen":
		return errno(unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, endpoint(arg)))
	case "message":
		return message(fd)
	}
	return "no such command"
}

// sourceOf is the control message that names the sender of a datagram, in the family of the socket.
func sourceOf(fd int, source string) []byte {
	ip := netip.MustParseAddr(source)
	if family, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); err == nil && family == unix.AF_INET6 {
		info, sixteen := make([]byte, unix.SizeofInet6Pktinfo), ip.As16()
		copy(info, sixteen[:])
		return control(unix.SOL_IPV6, unix.IPV6_PKTINFO, info)
	}
	info := make([]byte, unix.SizeofInet4Pktinfo)
	copy(info[4:], ip.AsSlice())
	return control(unix.SOL_IP, unix.IP_PKTINFO, info)
}

// message takes a datagram and says from whom it is and, where it was asked to tell, where it went to.
func message(fd int) string {
	if !readable(fd, 2*time.Second) {
		return "nothing"
	}
	var data [16]byte
	more := make([]byte, 128)
	_, n, _, from, err := unix.Recvmsg(fd, data[:], more, 0)
	if err != nil {
		return errno(err)
	}
	out := text(from, nil)
	messages, err := unix.ParseSocketControlMessage(more[:n])
	if err != nil {
		return errno(err)
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_IP && m.Header.Type == unix.IP_PKTINFO {
			out += " at " + netip.AddrFrom4([4]byte(m.Data[8:12])).String()
		}
	}
	return out
}

// control is one control message.
func control(level, kind int, data []byte) []byte {
	b := make([]byte, unix.CmsgSpace(len(data)))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = int32(level), int32(kind)
	h.SetLen(unix.CmsgLen(len(data)))
	copy(b[unix.CmsgLen(0):], data)
	return b
}
