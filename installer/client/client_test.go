package client_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
	"github.com/gominimal/minhost/installer/client/clienttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func dial(t *testing.T, h *clienttest.Helper) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), h.Path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

var plan = api.PlanIn{Name: "web", Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressDeny}, EndWithConnection: true}

// Every method reaches the helper under its own name, with a message that passes the strict check.
func TestEveryMethodIsCalled(t *testing.T) {
	h := clienttest.Start(t, clienttest.Behaviour{})
	c := dial(t, h)
	ctx := t.Context()
	p, err := c.Plan(ctx, plan)
	if err != nil {
		t.Fatal(err)
	}
	self := os.Getpid()
	var event api.Event
	for name, call := range map[string]func() error{
		"Update": func() error { return c.Update(ctx, api.UpdateIn{Lease: p.Lease, Policy: new(plan.Policy)}) },
		"Adopt":  func() error { return c.Adopt(ctx, api.AdoptIn{Lease: p.Lease, Secret: p.Secret}) },
		"Join": func() error {
			_, _, err := c.Join(ctx, api.JoinIn{Lease: p.Lease, Secret: p.Secret, Kind: api.JoinKindTask, PID: self}, nil)
			return err
		},
		"Listen": func() error {
			_, _, err := c.Listen(ctx, api.ListenIn{Lease: p.Lease, Secret: p.Secret, Protocol: api.ProtocolTCP, Port: 80})
			return err
		},
		"List":    func() error { _, err := c.List(ctx); return err },
		"Status":  func() error { _, err := c.Status(ctx); return err },
		"Verify":  func() error { _, err := c.Verify(ctx); return err },
		"Explain": func() error { _, err := c.Explain(ctx, api.ExplainIn{Box: "web"}); return err },
		"Repair":  func() error { _, err := c.Repair(ctx); return err },
		"Count":   func() error { _, err := c.Count(ctx); return err },
		"Watch": func() error {
			return c.Watch(ctx, api.WatchIn{Lease: p.Lease}, func(e api.Event) error { event = e; return nil })
		},
		"Abandon": func() error {
			second, err := c.Plan(ctx, plan)
			return errors.Join(err, c.Abandon(ctx, api.AbandonIn{Lease: second.Lease}))
		},
	} {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if event.Kind != api.EventKindGone || event.Lease != p.Lease {
		t.Errorf("Watch gave %+v", event)
	}
	var called []string
	for _, call := range h.Calls() {
		called = append(called, call.Method)
	}
	for _, method := range api.Methods() {
		if method == "Attach" || method == "Teardown" {
			continue // TestAttachByPidfdAndTeardown
		}
		if !slices.Contains(called, method) {
			t.Errorf("%s did not reach the helper", method)
		}
	}
	if got := h.Calls()[0].In; !reflect.DeepEqual(got, &plan) {
		t.Errorf("the helper got %+v", got)
	}
}

func TestErrorsComeBackAsTheirTypes(t *testing.T) {
	h := clienttest.Start(t, clienttest.Behaviour{Fail: map[string]api.Error{
		"Plan": &api.NameTaken{Name: "web", Message: "another box is named web", Next: "minhost ls"},
	}})
	c := dial(t, h)
	_, err := c.Plan(t.Context(), plan)
	var taken *api.NameTaken
	if !errors.As(err, &taken) || taken.Name != "web" || taken.Hint() != "minhost ls" {
		t.Errorf("Plan: %#v", err)
	}
	// The connection goes on: an answer is no failure.
	if _, err := c.Status(t.Context()); err != nil {
		t.Errorf("Status behind it: %v", err)
	}
	_, err = c.Plan(t.Context(), api.PlanIn{Mode: "bridge", Policy: plan.Policy})
	var invalid *api.InvalidArgument
	if !errors.As(err, &invalid) || invalid.Field != "parameters.mode" {
		t.Errorf("unknown mode: %#v", err)
	}
}

func TestDialSaysWhatToDo(t *testing.T) {
	folder := t.TempDir()
	dead := filepath.Join(folder, "dead")
	l, err := net.Listen("unix", dead)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	for name, c := range map[string]struct{ path, message, next string }{
		"nothing there":  {filepath.Join(folder, "none"), "there is no helper at", "minhost finalize-install"},
		"nobody listens": {dead, "does not run", "minhost finalize-install"},
		"a bad path":     {strings.Repeat("x", 300), "cannot be reached", "minhost finalize-install"},
		"a semicolon":    {dead + ";x", "cannot be reached", "minhost finalize-install"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client.Dial(t.Context(), c.path)
			var f *client.Failure
			if !errors.As(err, &f) || !strings.Contains(f.Error(), c.message) || f.Hint() != c.next || f.Err == nil {
				t.Errorf("got %#v", err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Dial(ctx, dead); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Cancelling a Plan that hangs closes the connection: the helper then owes nobody anything.
func TestCancelClosesTheConnection(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	h := clienttest.Start(t, clienttest.Behaviour{Before: func(context.Context, string, any) {
		close(entered)
		<-leave
	}})
	c := dial(t, h)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { _, err := c.Plan(ctx, plan); failed <- err }()
	<-entered
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("Plan: %v", err)
	}
	close(leave)
	eventually(t, "the plan is abandoned", func() bool {
		counts, live := h.Counts()
		return counts == clienttest.Counts{Plans: 1, Abandons: 1} && live == 0
	})
	if _, err := c.List(t.Context()); !errors.As(err, new(*client.Failure)) {
		t.Errorf("a call behind it: %v", err)
	}
}

func TestLostIsSeenWithoutACall(t *testing.T) {
	h := clienttest.Start(t, clienttest.Behaviour{})
	c := dial(t, h)
	if _, err := c.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Lost():
		t.Fatal("lost while the helper lives")
	case <-time.After(50 * time.Millisecond):
	}
	h.Drop()
	select {
	case <-c.Lost():
	case <-time.After(5 * time.Second):
		t.Fatal("the end of the connection was not seen")
	}
	_, err := c.Status(t.Context())
	if f := new(client.Failure); !errors.As(err, &f) || f.Hint() != "minhost status" {
		t.Errorf("Status: %#v", err)
	}
}

func TestCloseEndsLostAndCalls(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	h := clienttest.Start(t, clienttest.Behaviour{Before: func(context.Context, string, any) { close(entered); <-leave }})
	defer close(leave)
	c := dial(t, h)
	lost := c.Lost()
	failed := make(chan error, 1)
	go func() { _, err := c.List(context.Background()); failed <- err }()
	<-entered
	time.Sleep(50 * time.Millisecond) // Lost is in its system call now, and holds the descriptor
	c.Close()
	select {
	case <-lost:
	case <-time.After(5 * time.Second):
		t.Fatal("Close did not end the connection")
	}
	if err := <-failed; err == nil {
		t.Error("List got an answer over a closed connection")
	}
}

// The helper refuses a connection with an answer that nobody asked for, and closes without
// reading: the reason must not be lost behind a broken pipe.
func TestRefusedConnectionSaysWhy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	closed := make(chan struct{})
	go func() {
		conn, err := l.Accept()
		if err == nil {
			conn.Write([]byte(`{"error":"dev.minimal.Host.TooManyConnections","parameters":{"limit":32,"message":"32 connections already","next":""}}` + "\x00"))
			conn.Close()
		}
		close(closed)
	}()
	c, err := client.Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	<-closed
	_, err = c.List(t.Context())
	var many *api.TooManyConnections
	if !errors.As(err, &many) || many.Limit != 32 {
		t.Errorf("got %#v", err)
	}
}

func TestAnotherVersionOfTheHelper(t *testing.T) {
	h := clienttest.Start(t, clienttest.Behaviour{Fail: map[string]api.Error{"List": &future{}}})
	_, err := dial(t, h).List(t.Context())
	if err == nil || !strings.Contains(err.Error(), "unknown error dev.minimal.Host.Future") {
		t.Errorf("got %v", err)
	}
}

type future struct{ api.Internal }

func (*future) ErrorName() string { return api.Interface + ".Future" }

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Errorf("not within 5 s: %s", what)
}
