package helper

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/api"
	"golang.org/x/sys/unix"
)

// TestBadMessages: one clear error each; the connection goes on where the frame is whole.
func TestBadMessages(t *testing.T) {
	r := newRig(t)
	for name, c := range map[string]struct{ text, want string }{
		"not JSON":        {"hello", "Malformed"},
		"empty":           {"", "Malformed"},
		"not a call":      {"[1,2]", "Malformed"},
		"unknown field":   {`{"method":"dev.minimal.Host.List","parameters":{"x":1}}`, "InvalidArgument"},
		"doubled field":   {`{"method":"dev.minimal.Host.List","method":"dev.minimal.Host.List"}`, ""},
		"wrong case":      {`{"Method":"dev.minimal.Host.List"}`, ""},
		"unknown enum":    {`{"method":"dev.minimal.Host.Plan","parameters":{"mode":"vm","policy":{"egress":"deny"}}}`, "InvalidArgument"},
		"missing":         {`{"method":"dev.minimal.Host.Plan"}`, "InvalidArgument"},
		"no such method":  {`{"method":"dev.minimal.Host.Nope"}`, ""},
		"other interface": {`{"method":"org.example.Nope"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := r.dial(operatorUID, 10)
			a := w.raw(c.text)
			if a.Error == "" || c.want != "" && a.Error != api.Interface+"."+c.want {
				t.Errorf("%q, want %s", a.Error, c.want)
			}
			if err := w.call("List", nil, nil); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

// TestLargeMessage: ten megabytes get one error, and are not kept.
func TestLargeMessage(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	go w.c.Write([]byte(strings.Repeat("x", 10<<20) + "\x00"))
	a, err := w.receive()
	if err != nil || a.Error != "dev.minimal.Host.MessageTooLarge" {
		t.Errorf("%v %q", err, a.Error)
	}
	if _, err := w.receive(); !errors.Is(err, io.EOF) {
		t.Errorf("the connection must end: %v", err)
	}
}

// TestTooManyConnections: the 33rd of one account is told so, others are served.
func TestTooManyConnections(t *testing.T) {
	r := newRig(t)
	for range maxConnections {
		r.dial(operatorUID, 10)
	}
	r.dial(otherUID, 11)
	r.mu.Lock()
	r.next = NewPeer(operatorUID, 10, nil, func() error { return nil }, nil)
	r.mu.Unlock()
	w := r.connect()
	a, err := w.receive()
	if err != nil || a.Error != "dev.minimal.Host.TooManyConnections" {
		t.Errorf("%v %q", err, a.Error)
	}
}

// TestManyDescriptors: more than four end the connection, and none is kept open.
func TestManyDescriptors(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	before := openFiles(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	fd := int(null.Fd())
	rights := unix.UnixRights(fd, fd, fd, fd, fd)
	if _, _, err := w.c.WriteMsgUnix([]byte("{\"method\":\"dev.minimal.Host.List\"}\x00"), rights, nil); err != nil {
		t.Fatal(err)
	}
	if a, err := w.receive(); err == nil && a.Error == "" {
		t.Error("five descriptors were taken")
	}
	w.c.Close()
	r.eventually("descriptors closed", func() bool { return openFiles(t) <= before+1 })
}

func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// TestCloseCancelsACall: the end of a connection is seen while its call runs.
func TestCloseCancelsACall(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	w.send(`{"method":"dev.minimal.Host.Watch","parameters":{},"more":true}`)
	watching := func() int {
		r.h.events.mu.Lock()
		defer r.h.events.mu.Unlock()
		return len(r.h.events.watchers)
	}
	r.eventually("watch runs", func() bool { return watching() == 1 })
	w.c.Close()
	r.eventually("watch ended", func() bool { return watching() == 0 })
}
