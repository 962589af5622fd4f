package selftest

import (
	"bytes"
	"encoding/json"
	"net"
	"strings"
	"testing"
)

func TestResult(t *testing.T) {
	in := func(control, leaf, after Outcome) Result {
		return Result{Attempt{Outcome: control}, Attempt{Outcome: leaf}, Attempt{Outcome: after}}
	}
	for _, c := range []struct {
		r       Result
		failed  Half
		byTable bool
		words   string
	}{
		{in(Connected, Refused, Connected), None, true, "unknown box refused in 0 us by the table"},
		{in(Connected, Silent, Connected), None, false, "dropped by the belt"},
		{in(Connected, Connected, Connected), Leaf, false, "egress control is not effective"},
		{in(Connected, Failed, Connected), Leaf, false, "could not be tried"},
		{in(Connected, NotTried, NotTried), Leaf, false, "not tried"},
		{in(Refused, NotTried, NotTried), Control, false, "control connection from outside any box refused"},
		{in(Silent, NotTried, NotTried), Control, false, "silent"},
		{in(Connected, Refused, Refused), Control, false, "control connection from outside any box refused"},
		{Result{}, Control, false, "not tried"},
	} {
		if c.r.FailedHalf() != c.failed || c.r.OK() != (c.failed == None) || c.r.ByTable() != c.byTable ||
			!strings.Contains(c.r.String(), c.words) || strings.Contains(c.r.String(), "\n") {
			t.Errorf("%+v: half %q, ok %v, by table %v, %q", c.r, c.r.FailedHalf(), c.r.OK(), c.r.ByTable(), c.r)
		}
	}
}

func TestChild(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ask := func() (a Attempt) {
		var out, errOut bytes.Buffer
		if status := Child([]string{l.Addr().String(), "2s"}, &out, &errOut); status != 0 {
			t.Fatalf("status %d: %s", status, errOut.Bytes())
		}
		if err := json.Unmarshal(out.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := ask(); a.Outcome != Connected {
		t.Errorf("%+v", a)
	}
	l.Close()
	if a := ask(); a.Outcome != Refused || a.Error == "" {
		t.Errorf("%+v", a)
	}
	for _, bad := range [][]string{nil, {"127.0.0.1:1"}, {"127.0.0.1:1", "soon"}, {"a", "1s", "b"}} {
		var out, errOut bytes.Buffer
		if status := Child(bad, &out, &errOut); status != 2 || out.Len() != 0 || errOut.Len() == 0 {
			t.Errorf("%q: status %d, %q, %q", bad, status, out.Bytes(), errOut.Bytes())
		}
	}
	var out bytes.Buffer
	if Child([]string{"nonsense", "1s"}, &out, &out); !strings.Contains(out.String(), string(Failed)) {
		t.Errorf("no address: %s", out.String())
	}
}
