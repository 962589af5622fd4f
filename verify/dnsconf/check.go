package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// wait is how long a reply may take. Where silence is right no time is waited out.
const wait = 2 * time.Second

// check is one property of a name server at an address ("127.0.0.1:15353").
type check struct {
	name string
	run  func(addr string) error
}

// reply is what came back, beside what was asked.
type reply struct {
	query, raw []byte
	*dns.Msg
}

// judge finds fault with a reply.
type judge func(reply) error

// exchange sends a datagram and returns the first that comes back with its id.
func exchange(addr string, msg []byte) ([]byte, error) {
	conn, err := net.Dial("udp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(wait))
	if _, err := conn.Write(msg); err != nil {
		return nil, err
	}
	buf := make([]byte, 65535)
	n, err := conn.Read(buf)
	if err != nil {
		return nil, fmt.Errorf("no reply: %w", err)
	}
	return buf[:n], nil
}

// read unpacks a reply and holds what is true of all.
func read(query, raw []byte) (reply, error) {
	r := reply{query, raw, new(dns.Msg)}
	if err := r.Unpack(raw); err != nil {
		return r, fmt.Errorf("reply %x: %w", raw, err)
	}
	switch {
	case len(query) < 12 || binary.BigEndian.Uint16(query) != r.Id:
		return r, fmt.Errorf("id %d", r.Id)
	case !r.Response:
		return r, errors.New("QR is not set")
	case r.Opcode != int(query[2]>>3&15):
		return r, fmt.Errorf("opcode %d", r.Opcode)
	case r.Zero:
		return r, errors.New("the reserved bit is set")
	case r.RecursionAvailable:
		return r, errors.New("RA is set")
	}
	return r, nil
}

func (r reply) judge(judges []judge) error {
	for _, j := range judges {
		if err := j(r); err != nil {
			return err
		}
	}
	return nil
}

// udp puts a message over UDP.
func udp(msg []byte, judges ...judge) func(string) error {
	return func(addr string) error {
		raw, err := exchange(addr, msg)
		if err != nil {
			return err
		}
		r, err := read(msg, raw)
		if err != nil {
			return err
		}
		return r.judge(judges)
	}
}

// silence holds that a datagram gets no reply: the next one's is the first to come.
func silence(msg []byte) func(string) error {
	return func(addr string) error {
		conn, err := net.Dial("udp", addr)
		if err != nil {
			return err
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(wait))
		next := ask("web", dns.TypeA, id(0x7777))
		for _, m := range [][]byte{msg, next} {
			if _, err := conn.Write(m); err != nil {
				return err
			}
		}
		buf := make([]byte, 4096)
		n, err := conn.Read(buf)
		if err != nil {
			return fmt.Errorf("no reply to the next query: %w", err)
		}
		if n < 2 || binary.BigEndian.Uint16(buf) != 0x7777 {
			return fmt.Errorf("a reply: %x", buf[:n])
		}
		return nil
	}
}

// tcp puts messages over one connection, all sent in pieces of so many octets before the first reply is
// read, and judges each reply.
func tcp(messages [][]byte, piece int, judges ...judge) func(string) error {
	return func(addr string) error {
		conn, err := net.DialTimeout("tcp", addr, wait)
		if err != nil {
			return err
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(wait))
		var all []byte
		for _, m := range messages {
			all = append(binary.BigEndian.AppendUint16(all, uint16(len(m))), m...)
		}
		for part := range slices.Chunk(all, piece) {
			if _, err := conn.Write(part); err != nil {
				return err
			}
		}
		left := map[uint16][]byte{}
		for _, m := range messages {
			left[binary.BigEndian.Uint16(m)] = m
		}
		for range messages {
			raw, err := readFrame(conn)
			if err != nil {
				return err
			}
			query, ok := left[binary.BigEndian.Uint16(raw)]
			if !ok {
				return fmt.Errorf("a reply to nothing that was asked: %x", raw)
			}
			delete(left, binary.BigEndian.Uint16(raw))
			r, err := read(query, raw)
			if err != nil {
				return err
			}
			if err := r.judge(judges); err != nil {
				return err
			}
		}
		return nil
	}
}

func readFrame(conn net.Conn) ([]byte, error) {
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, fmt.Errorf("no reply: %w", err)
	}
	raw := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, raw); err != nil || len(raw) < 12 {
		return nil, fmt.Errorf("reply of %d octets: %w", len(raw), err)
	}
	return raw, nil
}

// codes are the names of rcodes.
func codes(all []int) string {
	var names []string
	for _, c := range all {
		name := dns.RcodeToString[c]
		if c == dns.RcodeBadVers {
			name = "BADVERS" // the library calls 16 BADSIG
		}
		names = append(names, name)
	}
	return strings.Join(names, " or ")
}
