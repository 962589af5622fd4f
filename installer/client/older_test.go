package client_test

import (
	"errors"
	"testing"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
	"github.com/gominimal/minhost/installer/client/clienttest"
)

// TestOlderHelper: what a helper does not know yet is one sentence with the next command, whatever is called, and the
// connection goes on; what it knows works.
func TestOlderHelper(t *testing.T) {
	c, err := client.Dial(t.Context(), clienttest.StartOlder(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := plan
	in.Boundary = api.BoundaryStrict
	for want, call := range map[string]func() error{
		"the helper, version test, is older than this program: Plan: boundary is not known":      func() error { _, err := c.Plan(t.Context(), in); return err },
		"the helper, version test, is older than this program: Count: there is no such method":   func() error { _, err := c.Count(t.Context()); return err },
		"the helper, version test, is older than this program: Explain: there is no such method": func() error { _, err := c.Explain(t.Context(), api.ExplainIn{}); return err },
	} {
		err := call()
		var older *client.Older
		if !errors.As(err, &older) || older.Error() != want || older.Hint() != "minhost finalize-install" {
			t.Errorf("%v, want %s", err, want)
		}
		if errors.As(err, new(*client.Failure)) {
			t.Errorf("%v: it would be tried again", err)
		}
	}
	if out, err := c.Plan(t.Context(), plan); err != nil || out.Name != "web" {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestOwnMistake: a helper that speaks the interface of now is not called old for what its caller did wrong.
func TestOwnMistake(t *testing.T) {
	c := dial(t, clienttest.Start(t, clienttest.Behaviour{}))
	in := plan
	in.Boundary = "strong"
	_, err := c.Plan(t.Context(), in)
	if e := new(api.InvalidArgument); errors.As(err, new(*client.Older)) || !errors.As(err, &e) || e.Field != "parameters.boundary" {
		t.Errorf("%v", err)
	}
}
