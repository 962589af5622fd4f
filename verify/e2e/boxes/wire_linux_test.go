package boxes

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
)

// raw sends octets as a user and returns the error of the first reply.
func (h *host) raw(uid uint32, message []byte) error {
	h.Helper()
	var conn net.Conn
	var err error
	h.as(uid, func() { conn, err = net.Dial("unix", layout.Socket) })
	h.must(err)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	go conn.Write(message)
	line, err := bufio.NewReader(conn).ReadBytes(0)
	if err != nil {
		return fmt.Errorf("no reply: %w", err)
	}
	var reply struct {
		Error      string
		Parameters json.RawMessage
	}
	if err := json.Unmarshal(line[:len(line)-1], &reply); err != nil || reply.Error == "" {
		return err
	}
	return api.DecodeError(reply.Error, reply.Parameters)
}

// TestWire: what is no call is one clear error, and the helper goes on.
func TestWire(t *testing.T) {
	h := newHost(t)
	before := h.waitHelper()
	call := func(method, parameters string) []byte {
		return []byte(`{"method":"dev.minimal.Host.` + method + `","parameters":` + parameters + "}\x00")
	}
	for _, m := range []struct {
		what    string
		message []byte
		name    string
	}{
		{"10 MB without an end", bytes.Repeat([]byte("a"), 10<<20), "MessageTooLarge"},
		{"10 MB of JSON", call("Plan", `{"name":"`+strings.Repeat("a", 10<<20)+`","mode":"host","policy":{"egress":"deny"}}`), "MessageTooLarge"},
		{"65,537 octets", append(bytes.Repeat([]byte(" "), 65537), 0), "MessageTooLarge"},
		{"no JSON", []byte("GET / HTTP/1.1\r\n\r\n\x00"), "Malformed"},
		{"half a value", []byte(`{"method":` + "\x00"), "Malformed"},
		{"two values", []byte(`{}{}` + "\x00"), "Malformed"},
		{"nothing", []byte("\x00"), "Malformed"},
		{"a list", []byte("[]\x00"), "Malformed"},
		{"no method", []byte("{}\x00"), "Malformed"},
		{"no UTF-8", []byte("{\"method\":\"\xff\"}\x00"), "Malformed"},
		{"deep nesting", append(bytes.Repeat([]byte("["), 60000), 0), "Malformed"},
		{"unknown field", call("Status", `{"colour":1}`), "InvalidArgument"},
		{"doubled field", call("Explain", `{"box":"a","box":"b","destination":"192.0.2.1"}`), "InvalidArgument"},
		{"field in capitals", call("Explain", `{"Box":"a","destination":"192.0.2.1"}`), "InvalidArgument"},
		{"missing field", call("Plan", `{"mode":"host"}`), "InvalidArgument"},
		{"text for a number", call("Attach", `{"lease":"a","pid":"1"}`), "InvalidArgument"},
		{"unknown mode", call("Plan", `{"mode":"sideways","policy":{"egress":"deny"}}`), "InvalidArgument"},
	} {
		h.wants(m.what, h.raw(operatorUID, m.message), m.name)
		h.wants(m.what+", of a stranger", h.raw(strangerUID, m.message), m.name)
	}
	if err := h.raw(operatorUID, call("Status", "{}")); err != nil {
		t.Errorf("a good call: %v", err)
	}
	if after := h.waitHelper(); after != before {
		t.Errorf("the helper was %d, is %d", before, after)
	}
}

// TestCallers: who may call what.
func TestCallers(t *testing.T) {
	h := newHost(t)
	for _, c := range []struct {
		who         string
		uid         uint32
		may, repair bool
	}{{"operator", operatorUID, true, false}, {"stranger", strangerUID, false, false}, {"member", memberUID, true, false}, {"root", 0, true, true}} {
		cl := h.dial(c.uid)
		check := func(method string, may bool, err error) {
			t.Helper()
			if may && err != nil {
				t.Errorf("%s, %s: %v", c.who, method, err)
			}
			if !may {
				h.wants(c.who+", "+method, err, "NotAllowed")
			}
		}
		_, err := cl.Status(h.ctx())
		check("Status", c.may, err)
		_, err = cl.List(h.ctx())
		check("List", c.may, err)
		_, err = cl.Verify(h.ctx())
		check("Verify", c.may, err)
		_, err = cl.Repair(h.ctx())
		check("Repair", c.repair, err)
		plan, err := cl.Plan(h.ctx(), planIn("", denyPolicy()))
		check("Plan", c.may, err)
		if err == nil {
			h.must(cl.Abandon(h.ctx(), api.AbandonIn{Lease: plan.Lease}))
		}
		cl.Close()
	}
}

// TestCallersInside: from inside a box only Explain of the box itself is answered, root or not, and
// namespaces do not change who calls.
func TestCallersInside(t *testing.T) {
	h := newHost(t)
	h.box("neighbour", denyPolicy())
	for _, b := range []*box{h.box("inside", denyPolicy()), h.boxOf(0, planIn("inside-root", denyPolicy()))} {
		for _, method := range []string{"Plan", "Attach", "Join", "Listen", "Adopt", "Abandon", "List", "Status", "Verify", "Repair", "Update", "Teardown"} {
			in := map[string]string{"Method": method, "Box": b.plan.Lease, "To": b.plan.Secret}
			if got := ask[string](b.agent, "call", in); got != "dev.minimal.Host.NotAllowed" {
				t.Errorf("%v, %s: %q; want NotAllowed", b, method, got)
			}
		}
		for box, want := range map[string]bool{b.plan.Name: true, b.plan.Lease: true, "neighbour": false, "nobody": false} {
			got := ask[string](b.agent, "call", map[string]string{"Method": "Explain", "Box": box, "To": "192.0.2.7:443"})
			if (got == "") != want {
				t.Errorf("%v, Explain %s: %q; want an answer: %v", b, box, got, want)
			}
		}
		for _, argv := range [][]string{{layout.Program, "ls"}, {"setsid", "-w", layout.Program, "ls"}, {"unshare", "-r", "-C", layout.Program, "ls"},
			{"unshare", "-r", "-p", "-f", "-m", layout.Program, "ls"}, {layout.Program, "run", "--", "true"}} {
			out := ask[struct {
				Status int
				Text   string
			}](b.agent, "exec", argv)
			if out.Status == 0 || !strings.Contains(out.Text, "inside a box") {
				t.Errorf("%v, %v: status %d: %s; want a refusal that says why", b, argv, out.Status, out.Text)
			}
		}
	}
}

// TestLimits: the 254th address, what one account may hold, how often it may connect.
func TestLimits(t *testing.T) {
	h := newHost(t)
	root, op := h.dial(0), h.dial(operatorUID)
	var err error
	n := 0
	for ; n < 140; n++ {
		if _, err = op.Plan(h.ctx(), planIn(fmt.Sprintf("op%d", n), denyPolicy())); err != nil {
			break
		}
	}
	h.wants(fmt.Sprintf("address %d of an account", n+1), err, "QuotaExceeded")
	if n != 128 {
		t.Errorf("an account got %d addresses, want 128", n)
	}
	for ; n < 260; n++ {
		if _, err = root.Plan(h.ctx(), planIn(fmt.Sprintf("root%d", n), denyPolicy())); err != nil {
			break
		}
	}
	h.wants(fmt.Sprintf("address %d of the range", n+1), err, "NoAddress")
	if n != 253 {
		t.Errorf("%d addresses were given, want 253", n)
	}
	plan, err := op.Plan(h.ctx(), planIn("", denyPolicy()))
	if err != nil || strings.HasPrefix(plan.Address, "127.0.64.") {
		t.Errorf("a plan without a name needs no address of the range: %+v, %v", plan, err)
	}
	root.Close()
	op.Close()
	h.within(4*time.Second, "all plans are gone", h.leftovers)
	for range 31 {
		h.dial(strangerUID)
	}
	last := h.dial(strangerUID)
	_, err = last.Status(h.ctx())
	h.wants("the 32nd connection of a stranger", err, "NotAllowed")
	over := h.dial(strangerUID)
	_, err = over.Status(h.ctx())
	h.wants("the 33rd connection of a stranger", err, "TooManyConnections")
	if _, err := h.dial(operatorUID).Status(h.ctx()); err != nil {
		t.Errorf("another account, while a stranger holds all its connections: %v", err)
	}
}
