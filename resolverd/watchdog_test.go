package resolverd

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gominimal/minhost/resolverd/datagram"
	"github.com/gominimal/minhost/resolverd/report"
)

// stuck is a batch that may hang before it sends replies.
type stuck struct {
	datagram.Batch
	hangs *atomic.Bool
	goOn  chan struct{}
}

func (s stuck) Write() error {
	if s.hangs.Load() {
		<-s.goOn
	}
	return s.Batch.Write()
}

// TestWatchdog: the service manager is told while every socket is answered, idle or not, and no longer
// when one hangs; asking oneself is counted nowhere.
func TestWatchdog(t *testing.T) {
	for name, batch := range map[string]func(*net.UDPConn, bool) (datagram.Batch, error){
		"best": datagram.New, "plain": func(c *net.UDPConn, _ bool) (datagram.Batch, error) { return datagram.Plain(c), nil },
	} {
		t.Run(name, func(t *testing.T) { testWatchdog(t, batch) })
	}
}

func testWatchdog(t *testing.T, batch func(*net.UDPConn, bool) (datagram.Batch, error)) {
	hangs, goOn := new(atomic.Bool), make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	s := &Server{log: (&logLines{}).logger(), batch: func(c *net.UDPConn, marks bool) (datagram.Batch, error) {
		b, err := batch(c, marks)
		if marks { // the box view's
			b = stuck{b, hangs, goOn}
		}
		return b, err
	}, udpLimit: UDPLimit, peers: &peers{now: time.Now}}
	host, box := newPair(t, "127.0.0.1"), newPair(t, "127.0.0.1")
	s.sockets.udp = []udpSocket{{host.udp, HostView}, {box.udp, BoxView}}
	loops, err := s.openUDP()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	defer release()
	for _, l := range loops {
		wg.Go(func() {
			if err := s.serveUDP(ctx, l); err != nil {
				t.Error(err)
			}
		})
	}
	var told atomic.Int64
	wg.Go(func() { s.guard(ctx, loops, 5*time.Millisecond, func() error { told.Add(1); return nil }) })
	more := func(what string, n int64) {
		t.Helper()
		for before, end := told.Load(), time.Now().Add(patience); told.Load() < before+n; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the service manager is not told: %s", what)
			}
		}
	}
	more("idle", 3)
	ask(t, "udp", host.addr, "minhost.min.internal. A")
	more("asked", 3)
	hangs.Store(true)
	stopsTelling(t, &told)
	hangs.Store(false)
	release()
	more("goes on", 3)
	if c := s.Counters(); c[report.Silent] != 0 || c[report.Address] != 1 {
		t.Errorf("counted %v", c.Attrs())
	}
}

// stopsTelling waits for a pause that is many times longer than the distance between two tellings.
func stopsTelling(t *testing.T, told *atomic.Int64) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		before := told.Load()
		time.Sleep(300 * time.Millisecond)
		if told.Load() == before {
			return
		}
	}
	t.Fatal("the service manager is told although a socket hangs")
}

// TestPokeAfterClose: it does nothing.
func TestPokeAfterClose(t *testing.T) {
	for name, batch := range map[string]func(*net.UDPConn) (datagram.Batch, error){
		"plain": func(c *net.UDPConn) (datagram.Batch, error) { return datagram.Plain(c), nil },
		"best":  func(c *net.UDPConn) (datagram.Batch, error) { return datagram.New(c, false) },
	} {
		b, err := batch(newPair(t, "127.0.0.1").udp)
		if err != nil {
			t.Fatal(err)
		}
		b.Close()
		if err := b.Poke(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
