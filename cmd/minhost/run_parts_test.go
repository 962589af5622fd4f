package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/api"
)

func TestFindProgram(t *testing.T) {
	folder := t.TempDir()
	for name, mode := range map[string]os.FileMode{"good/tool": 0o755, "plain/tool": 0o644, "good/other": 0o755, "plain/only": 0o600} {
		path := filepath.Join(folder, name)
		if errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, mode)) != nil {
			t.Fatal("cannot write")
		}
	}
	good, plain := filepath.Join(folder, "good"), filepath.Join(folder, "plain")
	t.Chdir(good)
	for name, c := range map[string]struct {
		program, path, want string
		status              int
	}{
		"in PATH":                    {"tool", plain + ":" + good, good + "/tool", 0},
		"the first of PATH":          {"tool", good + ":" + plain, good + "/tool", 0},
		"an empty element":           {"other", plain + "::", "other", 0},
		"a path":                     {good + "/tool", "", good + "/tool", 0},
		"a relative path":            {"./tool", plain, "./tool", 0},
		"not found":                  {"none", good + ":" + plain, "", statusNotFound},
		"no PATH":                    {"tool", "", "", statusNotFound},
		"no such path":               {"./none", good, "", statusNotFound},
		"an empty name":              {"", good, "", statusNotFound},
		"not executable, in PATH":    {"only", good + ":" + plain, "", statusNotExecutable},
		"not executable, as a path":  {plain + "/only", "", "", statusNotExecutable},
		"a folder":                   {good, "", "", statusNotExecutable},
		"a file where a folder goes": {good + "/tool/x", "", "", statusNotExecutable},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := findProgram(c.program, c.path)
			var exit exitError
			if got != c.want || (err == nil) != (c.status == 0) || errors.As(err, &exit) && exit.code != c.status {
				t.Errorf("findProgram(%q, %q) = %q, %v; want %q, status %d", c.program, c.path, got, err, c.want, c.status)
			}
		})
	}
}

func TestChildEnvironment(t *testing.T) {
	plan := api.PlanOut{Name: "web", Address: "127.0.64.3", HostAddress: "127.0.64.254", Secret: "secret", Lease: "k3v9"}
	got := childEnvironment([]string{"A=1", "MINHOST_NAME=outer", "MINHOST_ADDRESS=127.0.64.9", "B="}, plan)
	want := []string{"A=1", "B=", "MINHOST_NAME=web", "MINHOST_ADDRESS=127.0.64.3", "MINHOST_HOST=127.0.64.254"}
	if want = append(want, serverVariables(nil, plan)...); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	got = childEnvironment([]string{"MINHOST_NAME=outer"}, api.PlanOut{HostAddress: "127.0.64.254"})
	if want := []string{"MINHOST_HOST=127.0.64.254"}; !slices.Equal(got, want) {
		t.Errorf("a box without name: got %q, want %q", got, want)
	}
}

func TestRefusalLines(t *testing.T) {
	to := func(port, count int) api.Refusal {
		return api.Refusal{Kind: api.RefusalKindAddress, Box: "web", Protocol: "tcp", Destination: "192.0.2.7",
			Port: port, Count: count, Time: fmt.Sprint(port, count)}
	}
	line := func(port int, times string) string {
		return fmt.Sprintf("the command could not reach 192.0.2.7:%d: the egress rules of box web do not allow it%s", port, times)
	}
	if got := refusalLines(nil, "the command"); len(got) != 0 {
		t.Errorf("nothing was refused: %q", got)
	}
	got := refusalLines([]api.Refusal{to(1, 1), to(2, 0), to(1, 2)}, "the command")
	if want := []string{line(2, ""), line(1, " (3 times)")}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var many []api.Refusal
	for port := range 64 {
		many = append(many, to(port+1, 1))
	}
	got = refusalLines(many, "the command")
	if len(got) != maxRefusals+1 || got[maxRefusals] != line(64, "") || got[1] != line(45, "") {
		t.Errorf("of 64: %d lines, %q", len(got), got)
	}
	if !strings.HasPrefix(got[0], "44 more destinations were refused") {
		t.Errorf("first line %q", got[0])
	}
}
