package api_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/api"
	"github.com/varlink/go/varlink/idl"
)

// The files in testdata were on the wire once. They are never edited: what is new gets a file of
// its own.
func fixtures(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", folder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimSuffix(filepath.Base(p), ".json")] = bytes.TrimSpace(b)
	}
	return found
}

func TestOldCallsParse(t *testing.T) {
	calls := fixtures(t, "calls")
	for _, method := range api.Methods() {
		if _, ok := calls[method]; !ok {
			t.Errorf("no fixture for a call of %s", method)
		}
	}
	for name, raw := range calls {
		method, _, _ := strings.Cut(name, "-")
		in, err := api.Decode(raw, method)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want := reflect.TypeOf(api.NewIn(method)); reflect.TypeOf(in) != want {
			t.Errorf("%s: decoded into %T, want %s", name, in, want)
		}
	}
}

func TestPlanFixtureKeepsItsMeaning(t *testing.T) {
	in, err := api.Decode(fixtures(t, "calls")["Plan"], "Plan")
	if err != nil {
		t.Fatal(err)
	}
	want := &api.PlanIn{
		Name: "web", Mode: api.ModeHost, EndWithConnection: true,
		Policy: api.Policy{
			Egress: api.EgressRules,
			Rules: []api.Rule{
				{To: "192.0.2.0/24", Ports: "443", Protocol: api.ProtocolTCP},
				{To: "2001:db8::1", Ports: "8000-8010", Protocol: api.ProtocolUDP},
				{To: "198.51.100.7", Protocol: api.ProtocolICMP},
				{To: "203.0.113.0/24", Protocol: api.ProtocolAny},
			},
			DenySubnets: []string{"169.254.0.0/16", "fe80::/10"},
			Ingress:     api.IngressPorts, IngressPorts: []int{3000, 8080},
		},
	}
	if !reflect.DeepEqual(in, want) {
		t.Errorf("got %+v, want %+v", in, want)
	}
}

type reply struct {
	Parameters json.RawMessage `json:"parameters"`
	Continues  bool            `json:"continues"`
	Error      string          `json:"error"`
}

// exactly decodes without tolerance for unknown fields and encodes again: both must say the same.
func exactly(t *testing.T, raw []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Error(err)
		return
	}
	again, err := json.Marshal(into)
	if err != nil {
		t.Error(err)
	}
	var a, b any
	if json.Unmarshal(raw, &a) != nil || json.Unmarshal(again, &b) != nil {
		t.Fatal("not JSON")
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("read %s, wrote %s", raw, again)
	}
}

func TestOldRepliesParse(t *testing.T) {
	replies := fixtures(t, "replies")
	for _, method := range api.Methods() {
		if _, ok := replies[method]; !ok {
			t.Errorf("no fixture for a reply to %s", method)
		}
	}
	for name, raw := range replies {
		method, _, _ := strings.Cut(name, "-")
		t.Run(name, func(t *testing.T) {
			var r reply
			exactly(t, raw, &r2{&r})
			exactly(t, r.Parameters, api.NewOut(method))
		})
	}
}

// r2 decodes a reply and encodes what was decoded, leaving out what is not there.
type r2 struct{ *reply }

func (r *r2) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(r.reply)
}

func (r *r2) MarshalJSON() ([]byte, error) {
	fields := map[string]any{"parameters": r.Parameters}
	if r.Continues {
		fields["continues"] = true
	}
	if r.Error != "" {
		fields["error"] = r.Error
	}
	return json.Marshal(fields)
}

func TestOldErrorsParse(t *testing.T) {
	parsed, err := idl.New(api.Description)
	if err != nil {
		t.Fatal(err)
	}
	errors := fixtures(t, "errors")
	for _, e := range parsed.Errors {
		raw, ok := errors[e.Name]
		if !ok {
			t.Errorf("no fixture for the error %s", e.Name)
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			var r reply
			exactly(t, raw, &r2{&r})
			exactly(t, r.Parameters, api.NewError(r.Error))
			err := api.DecodeError(r.Error, r.Parameters)
			if got := api.ErrorName(err); got != api.Interface+"."+e.Name {
				t.Errorf("ErrorName = %q", got)
			}
			if err.Error() != "what is wrong, in one line" || err.(api.Error).Hint() != "minhost ls" {
				t.Errorf("error says %q, hint %q", err, err.(api.Error).Hint())
			}
		})
	}
}

func TestRequiredListsAreNeverNull(t *testing.T) {
	for _, v := range []any{
		api.NetPlan{}, &api.TeardownOut{}, api.ListOut{}, api.VerifyOut{}, api.RepairOut{},
		api.PlanOut{}, api.JoinOut{},
	} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte("null")) {
			t.Errorf("%T is encoded as %s", v, b)
		}
	}
}

func TestDecodeErrorOfAnotherVersion(t *testing.T) {
	err := api.DecodeError("dev.minimal.Host.FromTheFuture", []byte(`{"message":"x\u001b[0m"}`))
	if api.ErrorName(err) != "" || !strings.Contains(err.Error(), "unknown error dev.minimal.Host.FromTheFuture") {
		t.Errorf("unknown name: %v", err)
	}
	err = api.DecodeError("dev.minimal.Host.Busy", []byte(`{"message":7}`))
	if api.ErrorName(err) != "" || err == nil {
		t.Errorf("parameters that do not fit: %v", err)
	}
}
