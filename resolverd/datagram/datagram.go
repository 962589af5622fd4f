// Package datagram reads and writes UDP messages, several per system call where the system can.
//
// It carries bytes and knows nothing of what they say. A reply goes out of the socket that the
// message came in by, to where it came from, and without control data: on macOS a reply that sets
// its source address re-binds the socket to every interface.
//
// Nothing is allocated per message.
package datagram

import (
	"errors"
	"net"
	"net/netip"
)

const (
	// Many is how many messages one system call carries at most. At 64 the share of the calls in
	// the cost of a query is below two in a hundred; more only makes the first reply wait longer.
	Many = 64

	// room is what one message has to itself, head and overflow what a batch shares: the rest of
	// a message that is longer. So 64 messages take 128 KiB instead of 4 MiB, and yet the longest
	// datagram arrives whole.
	room     = 2048
	overflow = 65536 - room
)

// ErrLost is what Read returns beside messages when others were lost: two messages longer than
// 2,048 octets in one batch, of which the last is kept.
var ErrLost = errors.New("long messages arrived together: one was kept")

// Message is one datagram and the reply to it.
type Message struct {
	// Data is what arrived. Like From and Mark it is valid until the next Read, and so is Reply.
	Data []byte
	From netip.AddrPort
	// Mark is the packet's mark, 0 where it has none or where the kernel does not tell.
	Mark uint32
	// Reply is what Write sends; nil is nothing. Read clears it. Its octets may be the message's
	// Space or the caller's own.
	Reply []byte
	// Space is 512 octets for a reply.
	Space *[512]byte
}

// Batch is a socket with the messages in hand. It belongs to one goroutine.
type Batch interface {
	// Read waits for messages and returns at least one, or an error. The socket's deadline ends
	// the wait.
	Read() ([]Message, error)
	// Write sends the replies. A reply that cannot be sent is left out and the others are sent;
	// the error is that of the last one.
	Write() error
}

// Plain is a batch of one message, for every system.
func Plain(conn *net.UDPConn) Batch {
	p := &plain{conn: conn, buf: make([]byte, room+overflow)}
	p.one[0].Space = new([512]byte)
	return p
}

type plain struct {
	conn *net.UDPConn
	buf  []byte
	one  [1]Message
}

func (p *plain) Read() ([]Message, error) {
	n, from, err := p.conn.ReadFromUDPAddrPort(p.buf)
	if err != nil {
		return nil, err
	}
	m := &p.one[0]
	m.Data, m.From, m.Reply = p.buf[:n], from, nil
	return p.one[:], nil
}

func (p *plain) Write() error {
	if p.one[0].Reply == nil {
		return nil
	}
	_, err := p.conn.WriteToUDPAddrPort(p.one[0].Reply, p.one[0].From)
	return err
}
