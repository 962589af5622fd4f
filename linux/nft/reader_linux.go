package nft

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// NFLOG messages and attributes (linux/netfilter/nfnetlink_log.h).
const (
	logMsgPacket    = 0
	logMsgConfig    = 1
	logCfgCmd       = 1
	logCfgMode      = 2
	logCfgThreshold = 5
	logCmdBind      = 1
	logCopyPacket   = 2
	logMark         = 2
	logPayload      = 9
	logPrefix       = 10
)

// Reader reads the refusals of one NFLOG group in the network namespace where it was made. The
// kernel gives a group to one reader.
type Reader struct {
	file   *os.File // of the netlink socket, in the runtime's poller
	handle func(Refused)
	lost   atomic.Uint64

	mu  sync.Mutex // held while messages are read and handled
	buf []byte
}

// NewReader binds the group. The handler is called for each refusal, one at a time, by Drain and Run;
// it must not call Drain.
func NewReader(group uint16, handler func(Refused)) (*Reader, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("open nflog: %w", err)
	}
	if err := bindGroup(fd, group); err != nil {
		unix.Close(fd)
		if errors.Is(err, unix.EPERM) {
			err = fmt.Errorf("another program reads this group: %w", err)
		}
		return nil, fmt.Errorf("bind nflog group %d: %w", group, err)
	}
	return &Reader{file: os.NewFile(uintptr(fd), "nflog"), handle: handler, buf: make([]byte, 64<<10)}, nil
}

// Close gives the group back and ends Run.
func (r *Reader) Close() error { return r.file.Close() }

// Lost is how often the kernel dropped refusals because they were not read in time.
func (r *Reader) Lost() uint64 { return r.lost.Load() }

// Drain handles everything that the kernel has queued until now: it queues a refusal before the
// refused call returns. When Drain returns, the handler has returned too, also for messages that Run
// took.
func (r *Reader) Drain() {
	raw, err := r.file.SyscallConn()
	if err != nil {
		return // closed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = raw.Control(func(fd uintptr) { r.read(int(fd)) })
}

// Run handles refusals as they come, until the context or the reader ends.
func (r *Reader) Run(ctx context.Context) error {
	raw, err := r.file.SyscallConn()
	if err != nil {
		return fmt.Errorf("read nflog: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { r.file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	for {
		// The first call of the function happens before any wait; "false" waits for more.
		first := true
		err := raw.Read(func(fd uintptr) bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.read(int(fd))
			again := !first
			first = false
			return again
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("read nflog: %w", err)
		}
	}
}

// read handles messages until the socket has none.
func (r *Reader) read(fd int) {
	for {
		n, _, err := unix.Recvfrom(fd, r.buf, unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENOBUFS):
			r.lost.Add(1)
			continue
		case err != nil:
			return
		}
		for _, e := range parseLog(r.buf[:n]) {
			r.handle(e)
		}
	}
}

// bindGroup asks for each packet of the group at once, with its first bytes.
func bindGroup(fd int, group uint16) error {
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	// Room for a burst; a helper has CAP_NET_ADMIN.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 1<<20); err != nil {
		return err
	}
	mode := binary.BigEndian.AppendUint32(nil, snapLen)
	for i, a := range []netlink.Attribute{
		attr(logCfgCmd, []byte{logCmdBind}),
		attr(logCfgMode, append(mode, logCopyPacket, 0)),
		attr(logCfgThreshold, be32(1)),
	} {
		if err := configure(fd, uint32(i+1), group, a); err != nil {
			return err
		}
	}
	return nil
}

// configure sends one configuration message and waits for the kernel's word, which is there when
// the send returns.
func configure(fd int, seq uint32, group uint16, a netlink.Attribute) error {
	data, err := netlink.MarshalAttributes([]netlink.Attribute{a})
	if err != nil {
		return err
	}
	m := netlink.Message{
		Header: netlink.Header{
			Type: unix.NFNL_SUBSYS_ULOG<<8 | logMsgConfig, Flags: netlink.Request | netlink.Acknowledge, Sequence: seq},
		Data: append(genHeader(unix.AF_UNSPEC, group), data...),
	}
	m.Header.Length = uint32(unix.NLMSG_HDRLEN + len(m.Data))
	b, err := m.MarshalBinary()
	if err != nil {
		return err
	}
	if err := unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(fd, buf, unix.MSG_DONTWAIT)
		if err != nil {
			return err
		}
		// Packets may come between once the group is bound; they are before our time.
		for m := range messages(buf[:n]) {
			if m.Type == unix.NLMSG_ERROR && m.Seq == seq && len(m.data) >= 4 {
				if errno := int32(binary.NativeEndian.Uint32(m.data)); errno != 0 {
					return unix.Errno(-errno)
				}
				return nil
			}
		}
	}
}

// message is one netlink message of a datagram.
type message struct {
	unix.NlMsghdr
	data []byte
}

// messages walks over the messages of a datagram; it stops at what is no message.
func messages(b []byte) func(yield func(message) bool) {
	return func(yield func(message) bool) {
		for len(b) >= unix.NLMSG_HDRLEN {
			m := message{NlMsghdr: unix.NlMsghdr{
				Len: binary.NativeEndian.Uint32(b), Type: binary.NativeEndian.Uint16(b[4:]), Seq: binary.NativeEndian.Uint32(b[8:])}}
			if m.Len < unix.NLMSG_HDRLEN || int(m.Len) > len(b) {
				return
			}
			m.data = b[unix.NLMSG_HDRLEN:m.Len]
			if !yield(m) {
				return
			}
			b = b[min(len(b), int(m.Len+3)&^3):]
		}
	}
}

// parseLog reads the refusals of one datagram. Packets that others logged to our group are left out.
func parseLog(b []byte) []Refused {
	var out []Refused
	for m := range messages(b) {
		if m.Type != unix.NFNL_SUBSYS_ULOG<<8|logMsgPacket || len(m.data) < 4 {
			continue
		}
		var e Refused
		var prefix string
		var payload []byte
		err := attributes(m.data[4:], func(t uint16, v []byte) error {
			switch t {
			case logMark:
				e.Number = uint16(num(v))
			case logPayload:
				payload = v
			case logPrefix:
				prefix = strings.TrimRight(string(v), "\x00")
			}
			return nil
		})
		if err != nil || prefix != prefixOut && prefix != prefixIn {
			continue
		}
		var ok bool
		if e.Protocol, e.To, ok = parsePacket(payload); ok {
			e.Inbound = prefix == prefixIn
			out = append(out, e)
		}
	}
	return out
}
