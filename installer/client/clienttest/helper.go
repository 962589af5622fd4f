package clienttest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/varlink/go/varlink"

	"github.com/gominimal/minhost/installer/api"
)

// Behaviour is what a fake does beside the lifetimes. The zero value succeeds in everything.
type Behaviour struct {
	// Refusals is what every Teardown answers.
	Refusals []api.Refusal
	// Net is the net plan of every plan.
	Net api.NetPlan
	// Enforcement of every plan; per_box when empty.
	Enforcement api.Enforcement
	// Fail gives methods an error instead of an effect.
	Fail map[string]api.Error
	// Give makes the descriptor that the reply to a method carries; nil for none. The fake closes it.
	Give func(method string) *os.File
	// Before is called with the decoded parameters (a pointer to <Method>In) before a method has
	// its effect; the context ends with the connection. May be nil.
	Before func(ctx context.Context, method string, in any)
}

// Helper is a running fake.
type Helper struct {
	// Path is the socket.
	Path string

	Behaviour
	service  *varlink.Service
	listener *net.UnixListener

	mu     sync.Mutex
	next   int
	boxes  map[string]*box
	conns  map[*net.UnixConn]bool
	calls  []Call
	counts Counts
	done   sync.WaitGroup
}

// Call is a call as it came: In is a pointer to <Method>In.
type Call struct {
	Method string
	In     any
	FDs    int
}

// Counts are those of Status: at rest Plans = Attaches + Abandons and Attaches = Teardowns.
type Counts struct{ Plans, Attaches, Abandons, Teardowns int }

// box is a lease that is planned (no pids) or attached.
type box struct {
	id       string
	plan     api.PlanIn
	owner    *net.UnixConn // nil when its connection ended
	attached bool
	pids     []int
}

// Start runs a fake on a socket of its own until the test ends.
func Start(t testing.TB, b Behaviour) *Helper {
	t.Helper()
	// Not t.TempDir: the name of a test does not fit into the 107 octets of a socket path.
	folder, err := os.MkdirTemp("", "minhost")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o755); err != nil { // as the real one: everybody may connect
		t.Fatal(err)
	}
	h := &Helper{Path: filepath.Join(folder, "helper.sock"), Behaviour: b, boxes: map[string]*box{}, conns: map[*net.UnixConn]bool{}}
	if h.Net.Resolver == "" {
		h.Net.Resolver = api.ResolverHost
	}
	if h.service, err = varlink.NewService("gominimal", "minhost", "test", ""); err != nil {
		t.Fatal(err)
	}
	if err := h.service.RegisterInterface(&dispatcher{h}); err != nil {
		t.Fatal(err)
	}
	h.Listen(t)
	t.Cleanup(func() {
		h.Stop()
		os.RemoveAll(folder)
	})
	return h
}

// Listen accepts again after a Stop: a restart of the helper that kept its boxes.
func (h *Helper) Listen(t testing.TB) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: h.Path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(h.Path, 0o666); err != nil {
		t.Fatal(err)
	}
	h.listener = l
	h.done.Add(1)
	go func() {
		defer h.done.Done()
		for {
			conn, err := l.AcceptUnix()
			if err != nil {
				return
			}
			h.mu.Lock()
			h.conns[conn] = true
			h.mu.Unlock()
			h.done.Add(1)
			go h.serve(conn)
		}
	}()
}

// Stop closes the socket and every connection, as a helper that is killed: boxes stay.
func (h *Helper) Stop() {
	h.listener.Close()
	h.mu.Lock()
	for conn := range h.conns {
		for _, b := range h.boxes {
			if b.owner == conn {
				b.owner = nil
			}
		}
		conn.Close()
	}
	h.mu.Unlock()
	h.done.Wait()
}

// Drop closes every connection and goes on: boxes and plans end as their lifetimes say, before a
// client can adopt them.
func (h *Helper) Drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for conn := range h.conns {
		h.disowned(conn)
		conn.CloseWrite()
		conn.CloseRead()
	}
}

// Calls lists what was called until now.
func (h *Helper) Calls() []Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Call(nil), h.calls...)
}

// Counts counts until now; live is the number of leases that are left.
func (h *Helper) Counts() (c Counts, live int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.counts, len(h.boxes)
}

type connKey struct{}

func (h *Helper) serve(conn *net.UnixConn) {
	defer h.done.Done()
	ctx := context.WithValue(context.Background(), connKey{}, conn)
	h.service.ServeConn(ctx, conn)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, conn)
	h.disowned(conn)
}

// disowned ends what lives as long as a connection. h.mu is held.
func (h *Helper) disowned(conn *net.UnixConn) {
	for _, b := range h.boxes {
		if b.owner == conn && (!b.attached || b.plan.EndWithConnection) {
			h.end(b)
		}
	}
}

type dispatcher struct{ h *Helper }

func (d *dispatcher) VarlinkGetName() string        { return api.Interface }
func (d *dispatcher) VarlinkGetDescription() string { return api.Description }

func (d *dispatcher) VarlinkDispatch(ctx context.Context, call varlink.Call, method string) error {
	if api.NewIn(method) == nil {
		return call.ReplyMethodNotFound(ctx, method)
	}
	fds := call.RequestFDs()
	defer func() {
		for _, f := range fds {
			f.Close()
		}
	}()
	in, err := api.Decode(*call.Request, method)
	if err == nil && len(fds) > api.MaxDescriptors {
		err = &api.Malformed{Message: "too many descriptors"}
	}
	var out any
	if err == nil {
		out, err = d.h.do(ctx, method, in, fds)
	}
	if answer, ok := err.(api.Error); ok {
		return call.ReplyError(ctx, answer.ErrorName(), answer)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", method, err) // ends the connection
	}
	var give []*os.File
	if d.h.Give != nil {
		if f := d.h.Give(method); f != nil {
			defer f.Close()
			give = append(give, f)
		}
	}
	return call.ReplyWithFDs(ctx, out, give)
}
