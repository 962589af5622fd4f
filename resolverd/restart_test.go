package resolverd

import (
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestQueriesSurviveARestart: what arrives while no answerer runs waits in the manager's socket.
func TestQueriesSurviveARestart(t *testing.T) {
	r := start(t, nil)
	ask(t, "udp", r.host.addr, "minhost.min.internal. A")
	r.stop()
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(r.host.addr))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	query, _ := question(t, "minhost.min.internal. A")
	if _, err := conn.Write(query); err != nil {
		t.Fatal(err)
	}
	r.serve(t, nil)
	conn.SetReadDeadline(time.Now().Add(patience))
	if _, err := conn.Read(make([]byte, 512)); err != nil {
		t.Errorf("the query was lost: %v", err)
	}
	if got := ask(t, "tcp", r.host.addr, "minhost.min.internal. A"); !strings.HasPrefix(got, "NOERROR") {
		t.Error(got)
	}
}

// TestRestartsLoseNoQuery: many ask all the time, each once and never again, while the answerer is restarted
// over and over. What was read is answered before the end, what was not waits for the next one.
func TestRestartsLoseNoQuery(t *testing.T) {
	r := start(t, nil)
	var ended atomic.Bool
	var answered atomic.Int64
	var askers sync.WaitGroup
	for range 32 {
		askers.Go(func() {
			for !ended.Load() {
				if err := askOnce(r.host, uint16(answered.Add(1))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	const restarts = 20
	for n := range int64(restarts) {
		for end := time.Now().Add(patience); answered.Load() < 100*(n+1) && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		r.stop()
		r.serve(t, nil)
	}
	ended.Store(true)
	askers.Wait()
	t.Logf("%d restarts, %d queries", restarts, answered.Load())
}

// askOnce asks from a socket of its own and waits for the reply.
func askOnce(p pair, id uint16) error {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(p.addr))
	if err != nil {
		return err
	}
	defer conn.Close()
	query := wire(head(0, 0, 1, 0, 0, 0), askWeb)
	binary.BigEndian.PutUint16(query, id)
	if _, err := conn.Write(query); err != nil {
		return err
	}
	conn.SetReadDeadline(time.Now().Add(patience))
	reply := make([]byte, minUDPSize)
	n, err := conn.Read(reply)
	if err != nil {
		return fmt.Errorf("query %d was lost: %w", id, err)
	}
	if n < headerSize || binary.BigEndian.Uint16(reply) != id {
		return fmt.Errorf("query %d got %x", id, reply[:n])
	}
	return nil
}
