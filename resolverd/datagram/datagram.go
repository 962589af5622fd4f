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
	"os"
	"time"
)

const (
	// Many is how many messages one system call carries at most. At 64 the share of the calls in
	// the cost of a query is below two in a hundred; more only makes the first reply wait longer.
	Many = 64

	// The first message of a batch has room for the longest datagram, the others for less: so a
	// batch takes 190 KiB instead of 4 MiB, and a long query that comes alone arrives whole.
	longest = 65535
	room    = 2048
)

var (
	// ErrLost is what Read returns beside messages when one was longer than 2,048 octets and not
	// the first of its batch. Its Data is empty.
	ErrLost = errors.New("a long message came among others and was dropped")
	// ErrStopped is what Read returns after Stop.
	ErrStopped = errors.New("reading was stopped")
)

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

	buf []byte // where it arrives
}

// Batch is a socket with the messages in hand. It belongs to one goroutine.
type Batch interface {
	// Read waits for messages and returns at least one, or an error.
	Read() ([]Message, error)
	// Write sends the replies. A reply that cannot be sent is left out and the others are sent;
	// the error is that of the last one.
	Write() error
	// Stop ends the Read that waits and all that follow. Any goroutine may call it, also after Close.
	Stop()
	// Poke sends an empty message from the socket to itself, so that a Read that waits returns. Any
	// goroutine may call it; after Close it does nothing.
	Poke() error
	// Close closes the socket and frees what the batch holds, after the last Read and Write.
	Close()
}

// Plain is a batch of one message, for every system. Close of it closes conn.
func Plain(conn *net.UDPConn) Batch {
	return &plain{conn: conn, one: [1]Message{{Space: new([512]byte), buf: make([]byte, longest)}}}
}

type plain struct {
	conn *net.UDPConn
	one  [1]Message
}

func (p *plain) Read() ([]Message, error) {
	m := &p.one[0]
	n, from, err := p.conn.ReadFromUDPAddrPort(m.buf)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = ErrStopped
	}
	if err != nil {
		return nil, err
	}
	m.Data, m.From, m.Reply = m.buf[:n], from, nil
	return p.one[:], nil
}

func (p *plain) Write() error {
	if p.one[0].Reply == nil {
		return nil
	}
	_, err := p.conn.WriteToUDPAddrPort(p.one[0].Reply, p.one[0].From)
	return err
}

func (p *plain) Stop() { p.conn.SetReadDeadline(time.Unix(1, 0)) }

func (p *plain) Poke() error {
	_, err := p.conn.WriteTo(nil, p.conn.LocalAddr())
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (p *plain) Close() { p.conn.Close() }
