package helper

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"go.uber.org/goleak"
)

const (
	operatorUID = 1000
	otherUID    = 1001 // an operator too
	strangerUID = 4242
)

func tick() <-chan time.Time { return time.After(time.Millisecond) }

// rig is a helper on a real socket over a world in memory.
type rig struct {
	t      *testing.T
	w      *world
	h      *Helper
	path   string
	mu     sync.Mutex
	now    time.Time
	next   Peer // who the next connection is
	cancel context.CancelFunc
	served chan struct{}
}

func newRig(t *testing.T, change ...func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, w: newWorld(), now: time.Unix(1700000000, 0), path: filepath.Join(t.TempDir(), "s")}
	r.start(change...)
	// Behind t.TempDir's clean-up, which waits for nobody.
	t.Cleanup(func() { r.stop(); goleak.VerifyNone(t, goleak.IgnoreCurrent()) })
	return r
}

// start runs a helper over the world as it is: New, Replay, Serve.
func (r *rig) start(change ...func(*Config)) {
	r.t.Helper()
	cfg := Config{
		Version: "test", BootID: "boot", ServiceManager: "test", Tree: r.w, Table: fakeTable{r.w}, Flows: fakeFlows{r.w}, Names: r.w, Range: r.w,
		Processes: fakeProcs{r.w}, Isolation: fakeIsolation{r.w}, Sockets: fakeSockets{r.w}, Peers: r, Checker: noChecks{}, Store: fakeStore{r.w},
		Operators: func(p Peer) (bool, error) { return p.UID == operatorUID || p.UID == otherUID, nil },
		Grace:     time.Millisecond, RetryAfter: time.Millisecond, IdleAfter: time.Hour, MessageTime: 10 * time.Second, AdoptWithin: 50 * time.Millisecond, Now: r.clock, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	for _, f := range change {
		f(&cfg)
	}
	r.h = New(cfg)
	if err := r.h.Replay(context.Background()); err != nil {
		r.t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: r.path, Net: "unix"})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel, r.served = cancel, make(chan struct{})
	h, served := r.h, r.served
	go func() {
		defer close(served)
		if err := h.Serve(ctx, l); err != nil {
			r.t.Error(err)
		}
	}()
}

// stop ends the helper the orderly way. Connections are closed, so boxes with
// end_with_connection end.
func (r *rig) stop() {
	r.cancel()
	<-r.served
	r.h.Close()
}

func (r *rig) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rig) advance(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

// Identify implements Peers: the rig says who connects.
func (r *rig) Identify(*net.UnixConn) (Peer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next, nil
}

// wire is a client that knows nothing but JSON and NUL.
type wire struct {
	t  *testing.T
	c  *net.UnixConn
	in *bufio.Reader
	// fds are the descriptors that came until now; who looks closes them.
	fds []*os.File
}

// Read is for in: it keeps descriptors.
func (w *wire) Read(b []byte) (int, error) {
	oob := make([]byte, 64)
	n, oobn, _, _, err := w.c.ReadMsgUnix(b, oob)
	got, ferr := files(oob[:oobn])
	w.fds = append(w.fds, got...)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return max(n, 0), errors.Join(err, ferr)
}

// dial connects as a process of uid; the process is made when it is not there.
func (r *rig) dial(uid uint32, pid int) *wire {
	r.t.Helper()
	r.w.mu.Lock()
	p := r.w.procs[pid]
	r.w.mu.Unlock()
	if p == nil {
		p = r.w.spawn(pid, uid)
	}
	alive := func() error {
		r.w.mu.Lock()
		defer r.w.mu.Unlock()
		if p.dead {
			return errors.New("the process that opened this connection has ended")
		}
		return nil
	}
	r.mu.Lock()
	r.next = NewPeer(uid, pid, nil, alive, func() error { return nil })
	r.mu.Unlock()
	w := r.connect()
	w.raw(`{"method":"org.varlink.service.GetInfo"}`) // accepted and identified behind this
	return w
}

func (r *rig) connect() *wire {
	r.t.Helper()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: r.path, Net: "unix"})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	w := &wire{t: r.t, c: c}
	w.in = bufio.NewReader(w)
	return w
}

type answerOf struct {
	Error      string          `json:"error"`
	Parameters json.RawMessage `json:"parameters"`
	Continues  bool            `json:"continues"`
}

func (w *wire) send(text string) {
	w.t.Helper()
	if _, err := w.c.Write(append([]byte(text), 0)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *wire) receive() (answerOf, error) {
	w.c.SetReadDeadline(time.Now().Add(20 * time.Second))
	b, err := w.in.ReadBytes(0)
	if err != nil {
		return answerOf{}, err
	}
	var a answerOf
	return a, json.Unmarshal(b[:len(b)-1], &a)
}

// raw sends one message and returns the name of the error, "" for a success.
func (w *wire) raw(text string) answerOf {
	w.t.Helper()
	w.send(text)
	a, err := w.receive()
	if err != nil {
		w.t.Fatalf("%.80s: %v", text, err)
	}
	return a
}

// call calls a method and returns the error of the interface, if any; out may be nil.
func (w *wire) call(method string, in, out any) error {
	w.t.Helper()
	b, err := json.Marshal(map[string]any{"method": api.Interface + "." + method, "parameters": in})
	if err != nil {
		w.t.Fatal(err)
	}
	a := w.raw(string(b))
	if a.Error != "" {
		return api.DecodeError(a.Error, a.Parameters)
	}
	if out != nil {
		if err := json.Unmarshal(a.Parameters, out); err != nil {
			w.t.Fatal(err)
		}
	}
	return nil
}

// plan plans a box and fails the test when that fails.
func (w *wire) plan(in api.PlanIn) api.PlanOut {
	w.t.Helper()
	if in.Mode == "" {
		in.Mode = api.ModeHost
	}
	if in.Policy.Egress == "" {
		in.Policy.Egress = api.EgressDeny
	}
	var out api.PlanOut
	if err := w.call("Plan", in, &out); err != nil {
		w.t.Fatalf("plan: %v", err)
	}
	return out
}

// box plans and attaches a fresh process.
func (r *rig) box(w *wire, in api.PlanIn, pid int) api.PlanOut {
	r.t.Helper()
	return r.boxOf(operatorUID, w, in, pid)
}

func (r *rig) boxOf(uid uint32, w *wire, in api.PlanIn, pid int) api.PlanOut {
	r.t.Helper()
	out := w.plan(in)
	r.w.spawn(pid, uid)
	if err := w.call("Attach", api.AttachIn{Lease: out.Lease, PID: pid}, nil); err != nil {
		r.t.Fatalf("attach: %v", err)
	}
	return out
}

// eventually waits for something that another goroutine does; the bound is for liveness only.
func (r *rig) eventually(what string, ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if ok() {
			return
		}
		<-tick()
	}
	r.t.Fatalf("never: %s", what)
}

// atRest checks the equations of DESIGN.md section 8 and that nothing is left over.
func (r *rig) atRest() {
	r.t.Helper()
	r.eventually("no lease left", func() bool {
		r.h.mu.Lock()
		defer r.h.mu.Unlock()
		return len(r.h.boxes) == 0
	})
	r.h.mu.Lock()
	c, names, numbers := r.h.counts, len(r.h.names), len(r.h.numbers)
	r.h.mu.Unlock()
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if c.plans != c.attaches+c.abandons || c.attaches != c.teardowns {
		r.t.Errorf("counts do not add up: %+v", c)
	}
	if n := names + numbers + len(r.w.leaves) + len(r.w.table) + len(r.w.zone) + len(r.w.store); n != 0 {
		r.t.Errorf("left over: %d names, %d numbers, %d leaves, %d verdicts, zone %v, %d records",
			names, numbers, len(r.w.leaves), len(r.w.table), r.w.zone, len(r.w.store))
	}
}
