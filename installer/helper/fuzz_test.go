package helper

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/varlink/go/varlink"
	"golang.org/x/sys/unix"
)

// allocBound is what one message may make the helper allocate, replies and all: 64 KiB decode to some
// megabytes at the worst (an array of empty rules).
const allocBound = 16 << 20

// fuzzed is a helper on a world in memory with a box of an operator's, who has two connections: one for the
// messages that are made up, of which nobody reads the replies closely, and one for calls.
type fuzzed struct {
	s       *server
	c, ctl  *conn
	replies *bufio.Reader // of ctl
	box     api.PlanOut
	r       *rig
}

// Processes of the fuzzed world; a message that guesses the first would put the caller into a box.
const (
	callerPID = 3141592
	livePID   = 4000
)

func newFuzzed(f *testing.F) *fuzzed {
	f.Helper()
	t := new(testing.T) // of the rig, which fails nothing here
	z := &fuzzed{r: &rig{t: t, w: newWorld(), now: time.Unix(1700000000, 0), path: filepath.Join(f.TempDir(), "s")}}
	z.r.start()
	f.Cleanup(z.r.stop)
	service, err := varlink.NewService("v", "p", "1", "u")
	if err == nil {
		err = service.RegisterInterface(&dispatcher{z.r.h})
	}
	if err != nil {
		f.Fatal(err)
	}
	z.s = &server{h: z.r.h, service: service, accounts: z.r.h.accounts}
	z.s.accounts.perSecond, z.s.accounts.atOnce = 1e9, 1e9
	z.r.w.spawn(callerPID, operatorUID)
	var peer *net.UnixConn
	z.c, peer = z.connect(f)
	go io.Copy(io.Discard, peer)
	z.ctl, peer = z.connect(f)
	z.replies = bufio.NewReader(peer)
	z.live(f)
	return z
}

// live makes a box that has a process.
func (z *fuzzed) live(t testing.TB) {
	t.Helper()
	z.r.w.spawn(livePID, operatorUID)
	z.call(t, "Plan", api.PlanIn{Name: "live", Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressDeny}}, &z.box)
	z.call(t, "Attach", api.AttachIn{Lease: z.box.Lease, PID: livePID}, nil)
}

func (z *fuzzed) connect(t testing.TB) (*conn, *net.UnixConn) {
	t.Helper()
	ours, theirs := pair(t)
	ok := func() error { return nil }
	c := &conn{uc: ours, peer: NewPeer(operatorUID, callerPID, nil, ok, ok), message: 10 * time.Second, idle: time.Hour, busy: func() bool { return true }}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, theirs
}

func pair(t testing.TB) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "pair")
		c, err := net.FileConn(file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		ends[i] = c.(*net.UnixConn)
	}
	return ends[0], ends[1]
}

// call makes a call that must succeed.
func (z *fuzzed) call(t testing.TB, method string, in, out any) {
	t.Helper()
	z.s.work(z.ctl, message{raw: callOf(t, method, in)})
	b, err := z.replies.ReadBytes(0)
	var a answerOf
	if err == nil {
		err = json.Unmarshal(b[:len(b)-1], &a)
	}
	if err == nil && out != nil {
		err = json.Unmarshal(a.Parameters, out)
	}
	if err != nil || a.Error != "" {
		t.Fatalf("%s: %v %s %s", method, err, a.Error, a.Parameters)
	}
}

func callOf(t testing.TB, method string, in any) []byte {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"method": api.Interface + "." + method, "parameters": in})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// bounded has the helper work on a message and checks what it allocates, and that it serves the next one, which
// finds what this one found.
func (z *fuzzed) bounded(t *testing.T, raw []byte) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	z.c.ctx, z.c.cancel = context.WithTimeout(context.Background(), 50*time.Millisecond) // a Watch goes on until its end
	z.s.work(z.c, message{raw: raw})
	z.c.cancel()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > allocBound {
		t.Errorf("%d octets of message had %d allocated", len(raw), n)
	}
	var list api.ListOut
	z.call(t, "List", struct{}{}, &list)
	lives := false
	z.c.ctx, z.c.cancel = context.WithCancel(context.Background())
	defer z.c.cancel()
	for _, l := range list.Leases {
		if l.State == api.LeaseStatePlanned {
			z.s.work(z.c, message{raw: callOf(t, "Abandon", api.AbandonIn{Lease: l.Lease})})
		}
		lives = lives || l.Lease == z.box.Lease && l.State == api.LeaseStateAttached
	}
	z.r.w.spawn(10, operatorUID) // who may be attached and joined
	if !lives {
		z.live(t)
	}
}

// FuzzStream reads anything that a peer may write, in pieces of any length.
func FuzzStream(f *testing.F) {
	for _, text := range []string{"", "\x00", "\x00\x00{}", `{"method":"dev.minimal.Host.List"}` + "\x00", strings.Repeat("x", 9000) + "\x00", "{\x00{\x00{\x00"} {
		f.Add([]byte(text), uint16(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, piece uint16) {
		ours, peer := pair(t)
		c := &conn{uc: ours, message: 10 * time.Second, idle: time.Hour, busy: func() bool { return true }}
		go func() {
			for rest := text; len(rest) > 0; {
				n := min(len(rest), int(piece)+1)
				if _, err := peer.Write(rest[:n]); err != nil {
					break
				}
				rest = rest[n:]
			}
			peer.Close()
		}()
		var got [][]byte
		err := c.read(func(m message) error {
			if len(m.raw) > maxMessage || bytes.IndexByte(m.raw, 0) >= 0 {
				t.Errorf("a message of %d octets was let through", len(m.raw))
			}
			got = append(got, m.raw)
			return nil
		})
		c.uc.Close()
		want := bytes.Split(text, []byte{0})
		if err == io.EOF && (len(got) != len(want)-1 || !bytes.Equal(bytes.Join(got, []byte{0}), bytes.Join(want[:len(want)-1], []byte{0}))) {
			t.Errorf("%d messages came of %d", len(got), len(want)-1)
		}
	})
}
