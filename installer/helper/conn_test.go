package helper

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMessageBounds: a message of as many octets as it may have is a call; one more ends the connection, with a word why,
// and so does one that does not end, before it has.
func TestMessageBounds(t *testing.T) {
	r := newRig(t)
	const call = `{"method":"dev.minimal.Host.List"`
	pad := func(n int) string { return call + strings.Repeat(" ", n-len(call)-1) + "}" }
	w := r.dial(operatorUID, 10)
	if a := w.raw(pad(maxMessage)); a.Error != "" {
		t.Errorf("%d octets: %s", maxMessage, a.Error)
	}
	for name, text := range map[string]string{"one more": pad(maxMessage+1) + "\x00", "no end": strings.Repeat(" ", maxMessage+1)} {
		w := r.dial(operatorUID, 10)
		if _, err := w.c.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if a, err := w.receive(); err != nil || a.Error != "dev.minimal.Host.MessageTooLarge" {
			t.Errorf("%s: %v %s", name, err, a.Error)
		}
		if _, err := w.receive(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: the connection goes on: %v", name, err)
		}
	}
}

// TestDescriptorsInPieces: the bound of descriptors is that of a message, in however many pieces it comes.
func TestDescriptorsInPieces(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	before := openFiles(t)
	for _, piece := range []string{`{"method":`, `"dev.minimal.Host.List"` + "}\x00"} {
		w.piece(piece, maxFDs-1)
	}
	if a, err := w.receive(); err != nil || a.Error != "dev.minimal.Host.Malformed" {
		t.Errorf("%v %q", err, a.Error)
	}
	w.c.Close()
	r.eventually("descriptors closed", func() bool { return openFiles(t) <= before+1 })
}

// piece sends a part of a message with descriptors.
func (w *wire) piece(text string, n int) {
	w.t.Helper()
	null, err := os.Open(os.DevNull)
	if err != nil {
		w.t.Fatal(err)
	}
	defer null.Close()
	fds := make([]int, n)
	for i := range fds {
		fds[i] = int(null.Fd())
	}
	if _, _, err := w.c.WriteMsgUnix([]byte(text), unix.UnixRights(fds...), nil); err != nil {
		w.t.Fatal(err)
	}
}

// TestCallsTooMany: calls that wait while one runs are few, and the descriptors of one that came too many are closed.
func TestCallsTooMany(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	running := newHalt()
	r.w.setHook(func(at string) error {
		if at == "mkdir" {
			running.pass()
		}
		return nil
	})
	before := openFiles(t)
	w.send(`{"method":"dev.minimal.Host.Plan","parameters":{"mode":"host","policy":{"egress":"deny"}}}`)
	<-running.reached
	for range maxWaiting + 1 {
		w.piece(`{"method":"dev.minimal.Host.List"}`+"\x00", 1)
	}
	a, err := w.receive()
	if err != nil || a.Error != "dev.minimal.Host.Malformed" {
		t.Errorf("%v %q", err, a.Error)
	}
	w.c.Close()
	close(running.goOn)
	r.atRest()
	r.eventually("descriptors closed", func() bool { return openFiles(t) <= before })
}

// TestCallsBehindTheEnd: a call that waited when its connection ended is not made; and who connected is let go.
func TestCallsBehindTheEnd(t *testing.T) {
	r := newRig(t)
	r.w.spawn(10, operatorUID)
	var released, made atomic.Int32
	r.mu.Lock()
	r.next = NewPeer(operatorUID, 10, nil, func() error { return nil }, func() error { released.Add(1); return nil })
	r.mu.Unlock()
	w := r.connect()
	running := newHalt()
	r.w.setHook(func(at string) error {
		if at == "mkdir" {
			made.Add(1)
			running.pass()
		}
		return nil
	})
	plan := `{"method":"dev.minimal.Host.Plan","parameters":{"mode":"host","policy":{"egress":"deny"}}}`
	w.send(plan)
	<-running.reached
	w.send(plan)
	r.h.mu.Lock()
	var c *conn
	for _, b := range r.h.boxes {
		c = b.owner
	}
	r.h.mu.Unlock()
	w.c.Close()
	<-c.ctx.Done()
	close(running.goOn)
	r.eventually("the connection is let go", func() bool { return released.Load() == 1 })
	r.atRest()
	if n := made.Load(); n != 1 {
		t.Errorf("%d plans were made", n)
	}
}
