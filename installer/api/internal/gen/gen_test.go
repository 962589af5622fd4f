package main

import (
	"os"
	"strings"
	"testing"
)

func TestCommittedTypesAreWhatTheInterfaceSays(t *testing.T) {
	description, err := os.ReadFile("../../dev.minimal.Host.varlink")
	if err != nil {
		t.Fatal(err)
	}
	want, err := render(string(description))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../types_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("types_gen.go differs from dev.minimal.Host.varlink: run go generate ./installer/api")
	}
}

func TestRenderRefuses(t *testing.T) {
	const method = "# m\nmethod M() -> ()\n"
	for name, c := range map[string]struct{ text, want string }{
		"not an interface":         {"hello", "missing interface keyword"},
		"a type without comment":   {"interface a.b\ntype T (x: int)\n" + method, "T has no comment"},
		"a method without comment": {"interface a.b\nmethod M() -> ()", "M has no comment"},
		"an undefined type":        {"interface a.b\n# t\ntype T (x: U)\n" + method, "type U is not defined"},
		"a map":                    {"interface a.b\n# t\ntype T (x: [string]int)\n" + method, "no Go type"},
		"an alias of a scalar":     {"interface a.b\n# t\ntype T string\n" + method, "neither an enum nor a struct"},
		"an error without message": {"interface a.b\n" + method + "# e\nerror E\n", "no parameters"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("render: %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestGoName(t *testing.T) {
	for in, want := range map[string]string{
		"own_ip": "OwnIP", "deny_subnets": "DenySubnets", "pid": "PID", "boot_id": "BootID", "tcp": "TCP", "": "",
	} {
		if got := goName(in); got != want {
			t.Errorf("goName(%q) = %q, want %q", in, got, want)
		}
	}
}
