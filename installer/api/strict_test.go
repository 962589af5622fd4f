package api_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/api"
)

const planHead = `{"method":"dev.minimal.Host.Plan","parameters":`

func TestStrictNamesTheField(t *testing.T) {
	for name, c := range map[string]struct{ raw, field, message, next string }{
		"unknown field":     {planHead + `{"mode":"none","policy":{"egress":"deny"},"colour":1}}`, "parameters.colour", "is not known", "known here: name, mode"},
		"wrong case":        {planHead + `{"mode":"none","policy":{"Egress":"deny"}}}`, "parameters.policy.Egress", "is not known", "write egress"},
		"doubled":           {planHead + `{"mode":"none","mode":"host","policy":{"egress":"deny"}}}`, "parameters.mode", "is given twice", ""},
		"doubled by escape": {planHead + `{"mode":"none","mod\u0065":"host","policy":{"egress":"deny"}}}`, "parameters.mode", "is given twice", ""},
		"unknown enum":      {planHead + `{"mode":"own-ip","policy":{"egress":"deny"}}}`, "parameters.mode", "unknown value own-ip", "use one of none, host, own_ip"},
		"enum as number":    {planHead + `{"mode":1,"policy":{"egress":"deny"}}}`, "parameters.mode", "unknown value 1", ""},
		"enum in wrong case": {planHead + `{"mode":"none","policy":{"egress":"Deny"}}}`, "parameters.policy.egress",
			"unknown value Deny", "use one of deny, open, rules"},
		"deep": {planHead + `{"mode":"none","policy":{"egress":"rules","rules":[{"to":"a","protocol":"tcp"},{"to":"b","protocol":"any"},{"to":"c","protocol":"udp","ports":80}]}}}`,
			"parameters.policy.rules[2].ports", "must be a string", ""},
		"missing":            {planHead + `{"mode":"none"}}`, "parameters.policy", "is missing", ""},
		"missing parameters": {`{"method":"dev.minimal.Host.Plan"}`, "parameters", "is missing", ""},
		"null parameters":    {planHead + `null}`, "parameters", "must not be null", ""},
		"null required":      {planHead + `{"mode":null,"policy":{"egress":"deny"}}}`, "parameters.mode", "must not be null", ""},
		"bool as string":     {planHead + `{"mode":"none","policy":{"egress":"deny"},"allow_unenforced":"true"}}`, "parameters.allow_unenforced", "true or false", ""},
		"list as object":     {planHead + `{"mode":"none","policy":{"egress":"deny","rules":{}}}}`, "parameters.policy.rules", "must be a list", ""},
		"object as list":     {planHead + `{"mode":"none","policy":[]}}`, "parameters.policy", "must be an object", ""},
		"fraction":           {planHead + `{"mode":"none","policy":{"egress":"deny","ingress_ports":[1.5]}}}`, "parameters.policy.ingress_ports[0]", "whole number", ""},
		"exponent":           {planHead + `{"mode":"none","policy":{"egress":"deny","ingress_ports":[1e3]}}}`, "parameters.policy.ingress_ports[0]", "whole number", ""},
		"too large":          {planHead + `{"mode":"none","policy":{"egress":"deny","ingress_ports":[4294967297]}}}`, "parameters.policy.ingress_ports[0]", "whole number", ""},
		"number as string":   {planHead + `{"mode":"none","policy":{"egress":"deny","ingress_ports":["80"]}}}`, "parameters.policy.ingress_ports[0]", "whole number", ""},
		"hostile name":       {planHead + `{"mode":"none","policy":{"egress":"deny"},"\u001b[2J":1}}`, `parameters.\x1b[2J`, "is not known", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := api.Strict([]byte(c.raw), "Plan")
			var e *api.InvalidArgument
			if !errors.As(err, &e) {
				t.Fatalf("got %T %v", err, err)
			}
			if e.Field != c.field || !strings.Contains(e.Message, c.message) || !strings.Contains(e.Next, c.next) {
				t.Errorf("got %+v", *e)
			}
		})
	}
}

func TestStrictRefusesWhatIsNoCall(t *testing.T) {
	for name, raw := range map[string]string{
		"empty":              "",
		"not JSON":           "hello",
		"not an object":      `["dev.minimal.Host.List"]`,
		"trailing data":      `{"method":"dev.minimal.Host.List"} {}`,
		"trailing comma":     `{"method":"dev.minimal.Host.List",}`,
		"comment":            `{"method":"dev.minimal.Host.List"/**/}`,
		"NUL at the end":     "{\"method\":\"dev.minimal.Host.List\"}\x00",
		"not UTF-8":          "{\"method\":\"dev.minimal.Host.List\xff\"}",
		"another method":     `{"method":"dev.minimal.Host.Repair"}`,
		"another interface":  `{"method":"org.varlink.service.List"}`,
		"no method":          `{"parameters":{}}`,
		"method as list":     `{"method":["dev.minimal.Host.List"]}`,
		"doubled method":     `{"method":"dev.minimal.Host.Repair","method":"dev.minimal.Host.List"}`,
		"method, wrong case": `{"method":"dev.minimal.Host.List","Method":"dev.minimal.Host.Repair"}`,
		"unknown envelope":   `{"method":"dev.minimal.Host.List","uid":0}`,
		"flag as number":     `{"method":"dev.minimal.Host.List","more":1}`,
		"doubled parameters": `{"method":"dev.minimal.Host.List","parameters":{},"parameters":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			err := api.Strict([]byte(raw), "List")
			if e := new(api.Malformed); name != "doubled parameters" && !errors.As(err, &e) {
				t.Errorf("got %T %v", err, err)
			}
			if err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestStrictBoundsSizeAndDepth(t *testing.T) {
	long := planHead + `{"name":"` + strings.Repeat("a", api.MaxMessage) + `"}}`
	var large *api.MessageTooLarge
	if err := api.Strict([]byte(long), "Plan"); !errors.As(err, &large) || large.Limit != api.MaxMessage {
		t.Errorf("a long message: %v", err)
	}
	deep := `{"method":"org.example.M","parameters":` + strings.Repeat(`{"a":`, 30_000) + "1" + strings.Repeat("}", 30_000)
	if err := api.Strict([]byte(deep), ""); err == nil {
		t.Error("deep nesting is accepted")
	}
	deep = `{"method":"org.example.M","parameters":` + strings.Repeat(`[`, 20) + strings.Repeat("]", 20) + "}"
	if err := api.Strict([]byte(deep), ""); err == nil || !strings.Contains(err.Error(), "nested too deep") {
		t.Errorf("20 levels: %v", err)
	}
}

func TestStrictOfOtherInterfaces(t *testing.T) {
	ok := `{"method":"org.varlink.service.GetInterfaceDescription","parameters":{"interface":"dev.minimal.Host"}}`
	if err := api.Strict([]byte(ok), ""); err != nil {
		t.Error(err)
	}
	if err := api.Strict([]byte(`{"method":"org.varlink.service.GetInfo","parameters":null}`), ""); err != nil {
		t.Errorf("as the Go library sends it: %v", err)
	}
	doubled := `{"method":"org.varlink.service.X","parameters":{"a":[{"b":1,"b":2}]}}`
	var e *api.InvalidArgument
	if err := api.Strict([]byte(doubled), ""); !errors.As(err, &e) || e.Field != "parameters.a[0].b" {
		t.Errorf("a doubled field: %v", err)
	}
}

// FuzzStrict: what Strict lets through decodes, and what was decoded passes Strict again and
// decodes to the same; a message is never read in two ways.
func FuzzStrict(f *testing.F) {
	for _, method := range api.Methods() {
		f.Add([]byte(`{"method":"dev.minimal.Host.`+method+`","parameters":{}}`), method)
	}
	f.Add([]byte(planHead+`{"name":"web","mode":"host","policy":{"egress":"rules","rules":[{"to":"::/0","protocol":"any"}]}}}`), "Plan")
	f.Add([]byte(planHead+`{"mode":null,"policy":{"egress":"deny","ingress_ports":[-0,1e2,2147483648]}}}`), "Plan")
	f.Add([]byte(`{"method":"dev.minimal.Host.Join","parameters":{"lease":"a","secret":"\ud800","kind":"other","pid":-1},"more":true}`), "Join")
	f.Add([]byte(`{"method":"dev.minimal.Host.Explain","parameters":{"box":"a","destination":"b"},"parameters":null}`), "Explain")
	f.Fuzz(func(t *testing.T, raw []byte, method string) {
		in, err := api.Decode(raw, method)
		if err != nil {
			if api.ErrorName(err) == "" || strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Fatalf("not an error for the wire: %q", err)
			}
			return
		}
		again, err := json.Marshal(map[string]any{"method": api.Interface + "." + method, "parameters": in})
		if err != nil {
			t.Fatal(err)
		}
		if len(again) > api.MaxMessage {
			return // an escape of one octet may need six
		}
		second, err := api.Decode(again, method)
		if err != nil {
			t.Fatalf("%s was accepted, its own form %s is not: %v", raw, again, err)
		}
		third, err := json.Marshal(map[string]any{"method": api.Interface + "." + method, "parameters": second})
		if err != nil || string(third) != string(again) || reflect.TypeOf(in) != reflect.TypeOf(second) {
			t.Fatalf("read twice, %s and %s", again, third)
		}
	})
}

func BenchmarkStrict(b *testing.B) {
	raw := []byte(planHead + `{"name":"web","mode":"host","policy":{"egress":"rules","rules":[{"to":"192.0.2.0/24","ports":"443","protocol":"tcp"}]}}}`)
	for b.Loop() {
		if err := api.Strict(raw, "Plan"); err != nil {
			b.Fatal(err)
		}
	}
}
