package datagram

import (
	"bytes"
	_ "embed"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// open makes a socket with a batch over it, and a client that asks it.
func open(t testing.TB, network, address string, new func(*net.UDPConn, bool) (Batch, error)) (Batch, *net.UDPConn) {
	t.Helper()
	conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(address)))
	if err != nil {
		t.Skipf("no %s: %v", address, err)
	}
	to := conn.LocalAddr().(*net.UDPAddr)
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	batch, err := new(conn, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(batch.Close)
	client, err := net.DialUDP(network, nil, to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	client.SetDeadline(time.Now().Add(10 * time.Second))
	timer := time.AfterFunc(20*time.Second, batch.Stop)
	t.Cleanup(func() { timer.Stop() })
	return batch, client
}

func plainBatch(conn *net.UDPConn, _ bool) (Batch, error) { return Plain(conn), nil }

var batches = map[string]func(*net.UDPConn, bool) (Batch, error){"best": New, "plain": plainBatch}

// readAll reads until n messages are there, and answers each with answer.
func readAll(t testing.TB, batch Batch, n int, answer func(*Message)) {
	t.Helper()
	for seen := 0; seen < n; {
		messages, err := batch.Read()
		if err != nil {
			t.Fatal(err)
		}
		for i := range messages {
			if messages[i].Reply != nil {
				t.Fatal("a reply of the last round is left")
			}
			answer(&messages[i])
		}
		seen += len(messages)
		if err := batch.Write(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEcho: each message is read whole, with its sender, and each gets its own reply; those without
// a reply get none. Of every size, in both families, more than a batch holds.
func TestEcho(t *testing.T) {
	for name, new := range batches {
		for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
			t.Run(name+" "+address, func(t *testing.T) {
				batch, client := open(t, "udp", address, new)
				const count = 100
				size := func(i int) int { return 3 + i*7%510 }
				for i := range count {
					if _, err := client.Write(bytes.Repeat([]byte{byte(i)}, size(i))); err != nil {
						t.Fatal(err)
					}
				}
				next := 0
				readAll(t, batch, count, func(m *Message) {
					if want := bytes.Repeat([]byte{byte(next)}, size(next)); !bytes.Equal(m.Data, want) {
						t.Errorf("message %d is %x", next, m.Data)
					}
					if m.From != client.LocalAddr().(*net.UDPAddr).AddrPort() || m.Mark != 0 {
						t.Errorf("message %d is from %s, mark %#x", next, m.From, m.Mark)
					}
					switch next % 3 {
					case 0:
						m.Reply = m.Space[:copy(m.Space[:], m.Data)]
					case 1:
						m.Reply = append([]byte{}, m.Data...)
					}
					next++
				})
				buf := make([]byte, 2048)
				for i := range count {
					if i%3 == 2 {
						continue
					}
					n, err := client.Read(buf)
					if err != nil || n != size(i) || buf[0] != byte(i) || buf[n-1] != byte(i) {
						t.Fatalf("reply %d: %x, %v", i, buf[:n], err)
					}
				}
			})
		}
	}
}

// TestLong: a long message that comes first in its batch arrives whole, one among others is dropped
// and told, and the others arrive.
func TestLong(t *testing.T) {
	for name, new := range batches {
		t.Run(name, func(t *testing.T) {
			batch, client := open(t, "udp", "127.0.0.1:0", new)
			sent := [][]byte{bytes.Repeat([]byte{1}, 60000), {2}, bytes.Repeat([]byte{3}, room), bytes.Repeat([]byte{4}, room+1), {5}}
			for _, msg := range sent {
				if _, err := client.Write(msg); err != nil {
					t.Fatal(err)
				}
			}
			for i := 0; i < len(sent); {
				messages, err := batch.Read()
				if err != nil && !errors.Is(err, ErrLost) {
					t.Fatal(err)
				}
				for _, m := range messages {
					lost := len(m.Data) == 0 && errors.Is(err, ErrLost)
					if !bytes.Equal(m.Data, sent[i]) && !(lost && i == 3) {
						t.Errorf("message %d: %d octets, lost %v", i, len(m.Data), lost)
					}
					i++
				}
			}
		})
	}
}

// TestUnreachableReply: a reply that cannot be sent does not keep the others back.
func TestUnreachableReply(t *testing.T) {
	batch, client := open(t, "udp", "127.0.0.1:0", New)
	for i := range 3 {
		if _, err := client.Write([]byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	got := 0
	for got < 3 {
		messages, err := batch.Read()
		if err != nil {
			t.Fatal(err)
		}
		for i := range messages {
			messages[i].Reply = messages[i].Data
			if messages[i].Data[0] == 1 {
				messages[i].Reply = make([]byte, 65536) // longer than any datagram
			}
		}
		got += len(messages)
		if err := batch.Write(); (err != nil) != (len(messages) > 1 || messages[0].Data[0] == 1) {
			t.Errorf("Write: %v", err)
		}
	}
	buf := make([]byte, 16)
	for _, want := range []byte{0, 2} {
		if n, err := client.Read(buf); err != nil || n != 1 || buf[0] != want {
			t.Errorf("%x, %v; want %d", buf[:n], err, want)
		}
	}
}

// TestStopInAFlood: Stop ends reading also where a Read never waits, for more messages than a batch holds are
// there. They stay in the socket, for who holds it too.
func TestStopInAFlood(t *testing.T) {
	for name, new := range batches {
		t.Run(name, func(t *testing.T) {
			batch, client := open(t, "udp", "127.0.0.1:0", new)
			for range 2 * Many {
				if _, err := client.Write([]byte("ask")); err != nil {
					t.Fatal(err)
				}
			}
			if messages, err := batch.Read(); err != nil || len(messages) == 0 {
				t.Fatalf("%d messages, %v", len(messages), err)
			}
			batch.Stop()
			if messages, err := batch.Read(); !errors.Is(err, ErrStopped) || len(messages) != 0 {
				t.Errorf("%d messages after Stop, %v", len(messages), err)
			}
		})
	}
}

// TestStop ends a Read that waits, and one that comes later.
func TestStop(t *testing.T) {
	for name, new := range batches {
		t.Run(name, func(t *testing.T) {
			batch, _ := open(t, "udp", "127.0.0.1:0", new)
			time.AfterFunc(10*time.Millisecond, batch.Stop)
			for range 2 {
				if messages, err := batch.Read(); !errors.Is(err, ErrStopped) || len(messages) != 0 {
					t.Errorf("%d messages, %v", len(messages), err)
				}
			}
		})
	}
}

// TestAllocatesNothing per message.
func TestAllocatesNothing(t *testing.T) {
	for name, new := range batches {
		t.Run(name, func(t *testing.T) {
			batch, client := open(t, "udp", "127.0.0.1:0", new)
			ask, buf := []byte("ask"), make([]byte, 16)
			n := testing.AllocsPerRun(200, func() {
				if _, err := client.Write(ask); err != nil {
					t.Fatal(err)
				}
				messages, err := batch.Read()
				if err != nil {
					t.Fatal(err)
				}
				messages[0].Reply = messages[0].Data
				if err := batch.Write(); err != nil {
					t.Fatal(err)
				}
				if _, err := client.Read(buf); err != nil {
					t.Fatal(err)
				}
			})
			if n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

//go:embed datagram.go
var source string // what was compiled

// TestNoControlData: a Mac binds a socket to every interface whose reply has control data. No test but a Mac's
// would see that, so the calls that could carry any are not made.
func TestNoControlData(t *testing.T) {
	if !strings.Contains(source, "WriteToUDPAddrPort(") || strings.Contains(source, "WriteMsg") || strings.Contains(source, "Sendmsg") {
		t.Error("a reply goes out by another call than WriteToUDPAddrPort")
	}
}
