package launchd

import (
	"bytes"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"howett.net/plist"

	"github.com/gominimal/minhost/verify/golden"
)

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func jobs() map[string]Job {
	program := "/Library/PrivilegedHelperTools/dev.minimal.minhost"
	return map[string]Job{
		"loopback": {Label: "dev.minimal.loopback", Program: []string{program, "apply", "--at-boot", "--only", "range"}, SHA256: digest,
			OneShot: true, Log: "/private/var/log/dev.minimal.loopback.log"},
		"resolverd": {Label: "dev.minimal.resolverd", Program: []string{program, "resolverd"}, SHA256: digest, User: "nobody",
			Listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:15353")}, Log: "/private/var/log/dev.minimal.resolverd.log"},
		"helper": {Label: "dev.minimal.helper", Program: []string{program, "helper"}, SHA256: digest, Log: "/private/var/log/dev.minimal.helper.log"},
	}
}

func render(t *testing.T, j Job) []byte {
	t.Helper()
	b, err := Render(j)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGolden(t *testing.T) {
	for name, j := range jobs() {
		got, path := render(t, j), filepath.Join("testdata", name+".plist")
		golden.Check(t, path, got)
		if !bytes.HasPrefix(got, []byte("<?xml ")) || !bytes.Contains(got[:1024], []byte(Marker)) {
			t.Errorf("%s: head\n%.300s", name, got)
		}
	}
}

// TestPlutil has another implementation read what was rendered.
func TestPlutil(t *testing.T) {
	plutil, err := exec.LookPath("plistutil")
	if err != nil {
		t.Skip("SKIP plutil: plistutil (libplist-utils)")
	}
	for name, j := range jobs() {
		cmd := exec.Command(plutil, "-i", "-", "-o", "-", "-f", "bin")
		cmd.Stdin = bytes.NewReader(render(t, j))
		out, err := cmd.CombinedOutput()
		var p struct{ Label string }
		if err == nil {
			_, err = plist.Unmarshal(out, &p)
		}
		if err != nil || p.Label != j.Label || !bytes.HasPrefix(out, []byte("bplist")) {
			t.Errorf("%s: %v, %+v\n%q", name, err, p, out)
		}
	}
}

// keys of launchd.plist(5) that minhost may use, with the type that launchd insists on: a wrong type is
// ignored without a word.
var keys = map[string]string{
	"Label": "string", "ProgramArguments": "[string]", "EnvironmentVariables": "{string}", "UserName": "string",
	"RunAtLoad": "bool", "KeepAlive": "bool|{bool}", "ThrottleInterval": "int", "ProcessType": "string",
	"StandardOutPath": "string", "StandardErrorPath": "string", "Sockets": "{[{socket}]}",
}

var socketKeys = map[string][]string{
	"SockType": {"stream", "dgram"}, "SockProtocol": {"TCP", "UDP"}, "SockFamily": {"IPv4"}, "SockNodeName": {"127.0.0.1"},
	"SockServiceName": {"15353"},
}

func typeOf(v any) string {
	switch v := v.(type) {
	case string:
		return "string"
	case bool:
		return "bool"
	case uint64, int64:
		return "int"
	case []any:
		return "[" + typeOf(v[0]) + "]"
	case map[string]any:
		if _, is := v["SockType"]; is {
			return "{socket}"
		}
		for _, x := range v {
			return "{" + typeOf(x) + "}"
		}
	}
	return "?"
}

func TestKeys(t *testing.T) {
	for name, j := range jobs() {
		var p map[string]any
		if _, err := plist.Unmarshal(render(t, j), &p); err != nil {
			t.Fatal(err)
		}
		for key, v := range p {
			if got := typeOf(v); keys[key] == "" || !strings.Contains("|"+keys[key]+"|", "|"+got+"|") {
				t.Errorf("%s: key %s is a %s, want %q", name, key, got, keys[key])
			}
		}
		if p["ProcessType"] != "Interactive" {
			t.Errorf("%s: ProcessType %v: lookups and calls of people wait for it", name, p["ProcessType"])
		}
		if v, is := p["LaunchOnlyOnce"]; is {
			t.Errorf("%s: LaunchOnlyOnce %v: the job would be gone after its first exit", name, v)
		}
	}
}

// TestKeepAlive: a one-shot job is started again when it failed and not when it did its work; others
// always.
func TestKeepAlive(t *testing.T) {
	for name, want := range map[string]any{"loopback": map[string]any{"SuccessfulExit": false}, "helper": true, "resolverd": true} {
		var p map[string]any
		if _, err := plist.Unmarshal(render(t, jobs()[name]), &p); err != nil {
			t.Fatal(err)
		}
		got, isMap := p["KeepAlive"].(map[string]any)
		if m, wantMap := want.(map[string]any); wantMap != isMap || isMap && (got["SuccessfulExit"] != m["SuccessfulExit"] || len(got) != 1) || !isMap && p["KeepAlive"] != want {
			t.Errorf("%s: KeepAlive %v", name, p["KeepAlive"])
		}
		if n, _ := p["ThrottleInterval"].(uint64); n < 5 || n > 30 {
			t.Errorf("%s: ThrottleInterval %v", name, p["ThrottleInterval"])
		}
	}
}

// TestSockets: both kinds, on loopback by name; without SockNodeName the whole network could ask.
func TestSockets(t *testing.T) {
	var p struct{ Sockets map[string][]map[string]any }
	if _, err := plist.Unmarshal(render(t, jobs()["resolverd"]), &p); err != nil {
		t.Fatal(err)
	}
	kinds := map[any]bool{}
	for _, name := range SocketNames() {
		if len(p.Sockets[name]) != 1 {
			t.Fatalf("%s: %v", name, p.Sockets)
		}
		s := p.Sockets[name][0]
		kinds[s["SockType"]] = true
		for key, allowed := range socketKeys {
			if v, _ := s[key].(string); !strings.Contains(" "+strings.Join(allowed, " ")+" ", " "+v+" ") || v == "" {
				t.Errorf("%s: %s is %v, want one of %v", name, key, s[key], allowed)
			}
		}
		if s["SockPassive"] != true || len(s) != len(socketKeys)+1 {
			t.Errorf("%s: %v", name, s)
		}
	}
	if len(p.Sockets) != 2 || !kinds["dgram"] || !kinds["stream"] {
		t.Errorf("sockets: %v", p.Sockets)
	}
}

func TestRenderRefuses(t *testing.T) {
	for what, spoil := range map[string]func(*Job){
		"a wildcard":    func(j *Job) { j.Listen = []netip.AddrPort{netip.MustParseAddrPort("0.0.0.0:15353")} },
		"relative":      func(j *Job) { j.Program = []string{"minhost"} },
		"no program":    func(j *Job) { j.Program = nil },
		"two words":     func(j *Job) { j.Label = "a b" },
		"no digest":     func(j *Job) { j.SHA256 = "" },
		"a log nowhere": func(j *Job) { j.Log = "log" },
	} {
		j := jobs()["resolverd"]
		spoil(&j)
		if _, err := Render(j); err == nil {
			t.Errorf("%s is rendered", what)
		}
	}
}

func TestSameButProgram(t *testing.T) {
	j := jobs()["helper"]
	a := render(t, j)
	j.SHA256 = strings.Repeat("f", 64)
	b := render(t, j)
	j.Log = "/private/var/log/other.log"
	c := render(t, j)
	if !sameButProgram(a, b) || sameButProgram(a, c) || sameButProgram(b, c) || sameButProgram(nil, a) || sameButProgram([]byte("x"), a) {
		t.Error("an upgrade is told wrongly")
	}
}
