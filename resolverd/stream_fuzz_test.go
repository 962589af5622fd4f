package resolverd

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"
)

// FuzzStream: whatever octets come over a connection, in pieces of any size, there are only whole
// replies with ids of queries that were sent, and the connection ends.
func FuzzStream(f *testing.F) {
	query, _ := question(f, "minhost.min.internal. A")
	f.Add(append(framed(query), framed(query)...), uint8(1))
	f.Add([]byte("\x00\x00"), uint8(7))
	f.Add([]byte("\xff\xff\x00"), uint8(2))
	f.Add(append(framed(query[:11]), framed(query)...), uint8(200))
	s := &Server{tcp: tcpLimits{conns: 1, idle: 2 * time.Millisecond, message: 2 * time.Millisecond, write: time.Second}}
	f.Fuzz(func(t *testing.T, stream []byte, piece uint8) {
		client, server := net.Pipe()
		conn := &tcpConn{Conn: server}
		pool := &tcpPool{open: map[*tcpConn]struct{}{conn: {}}, limit: 1}
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer server.Close()
			s.serveConn(context.Background(), conn, pool, BoxView)
		}()
		replies := make(chan []byte, 1)
		go func() {
			all, _ := io.ReadAll(client) // until the server closes
			replies <- all
		}()
		client.SetWriteDeadline(time.Now().Add(patience))
		for left := stream; len(left) > 0; {
			n := min(len(left), 1+int(piece))
			if _, err := client.Write(left[:n]); err != nil {
				break // it has closed
			}
			left = left[n:]
		}
		<-done
		all := <-replies
		client.Close()
		for len(all) > 0 {
			if len(all) < 2 || len(all) < 2+int(binary.BigEndian.Uint16(all)) {
				t.Fatalf("half a reply: %x", all)
			}
			reply := all[2 : 2+binary.BigEndian.Uint16(all)]
			if len(reply) < headerSize || reply[2]&0x80 == 0 || !bytes.Contains(stream, reply[:2]) {
				t.Fatalf("reply %x to %x", reply, stream)
			}
			all = all[2+len(reply):]
		}
	})
}
