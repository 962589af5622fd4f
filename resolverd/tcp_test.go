package resolverd

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

func dialTCP(t *testing.T, to netip.AddrPort) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", to.String(), patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return conn
}

func framed(msg []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(msg))), msg...)
}

func readFramed(t *testing.T, conn net.Conn) []byte {
	t.Helper()
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		t.Fatal(err)
	}
	msg := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, msg); err != nil {
		t.Fatal(err)
	}
	return msg
}

// closed tells whether the answerer closes the connection, without an octet more.
func closed(t *testing.T, conn net.Conn) bool {
	t.Helper()
	n, err := conn.Read(make([]byte, 1))
	netErr, timeout := err.(net.Error)
	return n == 0 && err != nil && !(timeout && netErr.Timeout())
}

// TestPipelining: many queries sent ahead in one write, and then octet by octet, are all answered,
// each with its own id (RFC 7766 section 6.2.1.1).
func TestPipelining(t *testing.T) {
	r := start(t, nil)
	conn := dialTCP(t, r.host.addr)
	query, _ := question(t, "minhost.min.internal. A")
	var all []byte
	const count = 100
	for id := range uint16(count) {
		binary.BigEndian.PutUint16(query, id)
		all = append(all, framed(query)...)
	}
	if _, err := conn.Write(all); err != nil {
		t.Fatal(err)
	}
	for id := range uint16(count) {
		if m := unpack(t, readFramed(t, conn)); m.Id != id || len(m.Answer) != 1 {
			t.Fatalf("reply %d: %s", id, m)
		}
	}
	for _, octet := range framed(query) {
		if _, err := conn.Write([]byte{octet}); err != nil {
			t.Fatal(err)
		}
	}
	if m := unpack(t, readFramed(t, conn)); len(m.Answer) != 1 {
		t.Fatalf("reply to single octets: %s", m)
	}
}

// TestTCPRetry: a client that is told TC over UDP gets the whole answer over TCP.
func TestTCPRetry(t *testing.T) {
	r := start(t, func(s *Server) { s.udpLimit = 40 })
	const text = "minhost.min.internal. A"
	if got := ask(t, "udp", r.host.addr, text); got != "NOERROR qr aa tc\n" {
		t.Errorf("over UDP: %s", got)
	}
	if got := ask(t, "tcp", r.host.addr, text); got != "NOERROR qr aa\nanswer minhost.min.internal. 5 IN A 127.0.0.1\n" {
		t.Errorf("over TCP: %s", got)
	}
}

// TestLargestTCPMessage: 65535 octets are one query, not a cut one.
func TestLargestTCPMessage(t *testing.T) {
	r := start(t, nil)
	query, _ := question(t, "minhost.min.internal. A")
	conn := dialTCP(t, r.host.addr)
	if _, err := conn.Write(framed(append(query, bytes.Repeat([]byte{0}, 65535-len(query))...))); err != nil {
		t.Fatal(err)
	}
	if m := unpack(t, readFramed(t, conn)); len(m.Answer) != 1 {
		t.Errorf("%s", m)
	}
}

// TestTCPEnds: whoever holds a connection without using it, or talks something else, is cut off.
// Each row fails by a timeout of the test's own read when the answerer keeps the connection.
func TestTCPEnds(t *testing.T) {
	const short = 30 * time.Millisecond
	r := start(t, func(s *Server) { s.tcp.idle, s.tcp.message, s.tcp.write = time.Hour, short, short })
	impatient := start(t, func(s *Server) { s.tcp.idle = time.Second }) // longer than a busy machine takes to send a query
	query, _ := question(t, "minhost.min.internal. A")
	response := bytes.Clone(query)
	response[2] |= 0x80
	for name, send := range map[string][]byte{
		"length only":       {0},
		"length, no query":  {0, 40},
		"slow query":        framed(query)[:20],
		"length of nothing": {0, 0},
		"a scrap":           framed(query[:5]),
		"a response":        framed(response),
	} {
		t.Run(name, func(t *testing.T) {
			conn := dialTCP(t, r.host.addr)
			if _, err := conn.Write(send); err != nil {
				t.Fatal(err)
			}
			if !closed(t, conn) {
				t.Error("the connection was kept")
			}
		})
	}
	t.Run("query cut by a half-close", func(t *testing.T) {
		conn := dialTCP(t, r.host.addr)
		if _, err := conn.Write(framed(query)[:30]); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if !closed(t, conn) {
			t.Error("half a query was answered")
		}
	})
	t.Run("idle", func(t *testing.T) {
		if !closed(t, dialTCP(t, impatient.host.addr)) {
			t.Error("the connection was kept")
		}
	})
	t.Run("idle after a query", func(t *testing.T) {
		conn := dialTCP(t, impatient.host.addr)
		if _, err := conn.Write(framed(query)); err != nil {
			t.Fatal(err)
		}
		readFramed(t, conn)
		if !closed(t, conn) {
			t.Error("the connection was kept")
		}
	})
	t.Run("never reads", func(t *testing.T) {
		conn := dialTCP(t, r.host.addr)
		many := bytes.Repeat(framed(query), 1000)
		for range 1000 { // far above what both sockets' buffers hold
			if _, err := conn.Write(many); err != nil {
				if netErr, ok := err.(net.Error); ok && netErr.Timeout() {
					t.Error("the connection was kept")
				}
				return
			}
		}
		t.Error("everything was read though no reply was")
	})
}

// TestConnectionLimit: at the limit the connection idle for the longest makes room, one in use stays.
func TestConnectionLimit(t *testing.T) {
	r := start(t, func(s *Server) { s.tcp.conns = 3 })
	query, _ := question(t, "minhost.min.internal. A")
	exchange := func(conn net.Conn) {
		t.Helper()
		if _, err := conn.Write(framed(query)); err != nil {
			t.Fatal(err)
		}
		readFramed(t, conn)
	}
	var conns []net.Conn
	for range 3 {
		conn := dialTCP(t, r.host.addr)
		exchange(conn)
		conns = append(conns, conn)
	}
	exchange(conns[0]) // so that conns[1] is the oldest
	fourth := dialTCP(t, r.host.addr)
	exchange(fourth)
	if !closed(t, conns[1]) {
		t.Error("the connection that was idle the longest was kept")
	}
	for _, conn := range []net.Conn{conns[0], conns[2], fourth} {
		exchange(conn)
	}
	// The box view has a limit of its own: it keeps nobody out of the host's.
	exchange(dialTCP(t, r.box.addr))
	exchange(conns[0])
}

// TestStopEndsConnections: a stop does not wait for the idle deadline of open connections.
func TestStopEndsConnections(t *testing.T) {
	r := start(t, func(s *Server) { s.tcp.idle = time.Hour })
	conn := dialTCP(t, r.host.addr)
	query, _ := question(t, "minhost.min.internal. A")
	if _, err := conn.Write(framed(query)); err != nil {
		t.Fatal(err)
	}
	readFramed(t, conn)
	r.stop()
	if !closed(t, conn) {
		t.Error("the connection was kept")
	}
}

// TestStrictClient: a client that holds replies to the letter finds nothing to object to, over both
// networks and while the zone changes.
func TestStrictClient(t *testing.T) {
	r := start(t, nil)
	client := &dns.Client{Net: "udp", Timeout: patience}
	for i := range 200 {
		if i%10 == 0 {
			r.publish(t, zone(uint64(i), "web 127.0.64.1"))
		}
		m := new(dns.Msg).SetQuestion("wEb.mIn.InTeRnAl.", dns.TypeAAAA)
		m.SetEdns0(1232, false)
		reply, _, err := client.Exchange(m, r.host.addr.String())
		if err != nil {
			t.Fatal(err)
		}
		if reply.Question[0] != m.Question[0] || len(reply.Ns) != 1 || !strings.EqualFold(reply.Ns[0].Header().Name, Origin) {
			t.Fatalf("%s", reply)
		}
	}
}
