package helper

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/api"
)

// FuzzMessage has the helper work on anything as a whole message.
func FuzzMessage(f *testing.F) {
	for _, text := range calls(f) {
		f.Add(text)
	}
	f.Add([]byte(`{"method":"org.varlink.service.GetInterfaceDescription","parameters":{"interface":"dev.minimal.Host"}}`))
	f.Add([]byte(`{"method":"dev.minimal.Host.List","oneway":true,"more":true,"upgrade":true}`))
	z := newFuzzed(f)
	f.Fuzz(func(t *testing.T, raw []byte) { z.bounded(t, raw) })
}

// calls are the wire fixtures: one call of each method.
func calls(f *testing.F) map[string][]byte {
	f.Helper()
	paths, err := filepath.Glob("../api/testdata/calls/*")
	if err != nil || len(paths) < 10 {
		f.Fatalf("%d fixtures, %v", len(paths), err)
	}
	all := map[string][]byte{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		all[p] = b
	}
	return all
}

// parametersOf fuzzes the parameters of one method. The lease and secret of a live box stand for LEASE and SECRET.
func parametersOf(f *testing.F, method string, seeds ...string) {
	f.Helper()
	prefix := `"` + api.Interface + "." + method + `"`
	for _, text := range calls(f) {
		if _, rest, ok := strings.Cut(string(text), `"parameters":`); ok && strings.Contains(string(text), prefix) {
			f.Add(strings.TrimSuffix(strings.TrimSpace(rest), "}"))
		}
	}
	for _, s := range append(seeds, `{}`, `null`, `{"lease":"LEASE"}`, `{"lease":"LEASE","secret":"SECRET"}`) {
		f.Add(s)
	}
	z := newFuzzed(f)
	f.Fuzz(func(t *testing.T, parameters string) {
		parameters = strings.NewReplacer("LEASE", z.box.Lease, "SECRET", z.box.Secret).Replace(parameters)
		z.bounded(t, []byte(`{"method":`+prefix+`,"parameters":`+parameters+`}`))
	})
}

const somePolicy = `{"egress":"rules","rules":[{"to":"192.0.2.0/24","ports":"1-65535","protocol":"tcp"},{"to":"::/0","protocol":"any"}],` +
	`"deny_subnets":["10.0.0.0/8"],"ingress":{"from":"ports","ports":[80,443]}}`

func FuzzPlan(f *testing.F) {
	parametersOf(f, "Plan", `{"name":"a","mode":"host","policy":`+somePolicy+`,"attempt":"1","end_with_connection":true,"localhost":"own"}`,
		`{"mode":"own_ip","policy":{"egress":"deny"},"tap":{"address":"10.0.2.15/24","gateway":"10.0.2.2","mtu":1400,"name":"eth0"}}`)
}
func FuzzAttach(f *testing.F) { parametersOf(f, "Attach", `{"lease":"LEASE","pid":10}`) }
func FuzzJoin(f *testing.F) {
	parametersOf(f, "Join", `{"lease":"LEASE","secret":"SECRET","kind":"task","name":"t","pid":10}`)
}
func FuzzUpdate(f *testing.F) {
	parametersOf(f, "Update", `{"lease":"LEASE","secret":"SECRET","policy":`+somePolicy+`}`)
}
func FuzzListen(f *testing.F) {
	parametersOf(f, "Listen", `{"lease":"LEASE","secret":"SECRET","protocol":"tcp","port":80}`)
}
func FuzzExplain(f *testing.F) {
	parametersOf(f, "Explain", `{"lease":"LEASE","to":"192.0.2.1","port":443,"protocol":"tcp"}`)
}
func FuzzAdopt(f *testing.F)   { parametersOf(f, "Adopt") }
func FuzzAbandon(f *testing.F) { parametersOf(f, "Abandon") }
func FuzzTeardown(f *testing.F) {
	parametersOf(f, "Teardown", `{"lease":"LEASE","secret":"other","kill":true}`)
}
func FuzzWatch(f *testing.F)  { parametersOf(f, "Watch", `{"lookups":true}`) }
func FuzzList(f *testing.F)   { parametersOf(f, "List") }
func FuzzStatus(f *testing.F) { parametersOf(f, "Status") }
func FuzzVerify(f *testing.F) { parametersOf(f, "Verify") }
func FuzzRepair(f *testing.F) { parametersOf(f, "Repair") }
