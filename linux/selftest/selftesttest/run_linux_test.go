package selftesttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/linux/belt"
	"github.com/gominimal/minhost/linux/cgroup"
	"github.com/gominimal/minhost/linux/selftest"
	"github.com/gominimal/minhost/verify/netlab"
)

func TestMain(m *testing.M) {
	os.Exit(netlab.Main(m, netlab.Children{
		"selftest-child": func(args []string) int { return selftest.Child(args, os.Stdout, os.Stderr) },
		"flaky":          inLeaf(func() int { return 3 }),
		"hang":           inLeaf(func() int { time.Sleep(time.Hour); return 0 }),
		"whole":          wholeChild,
	}))
}

// inLeaf is a child that does its work outside leaves and misbehaves inside.
func inLeaf(misbehave func() int) func([]string) int {
	return func(args []string) int {
		if b, _ := os.ReadFile("/proc/self/cgroup"); strings.Contains(string(b), "/boxes/") {
			return misbehave()
		}
		return selftest.Child(args, os.Stdout, os.Stderr)
	}
}

// wholeChild makes the whole test and prints its error.
func wholeChild([]string) int {
	m, err := cgroup.FindMountHere()
	if err != nil {
		return 1
	}
	tree, err := cgroup.Open(m, "minhost", nil)
	if err != nil {
		return 1
	}
	_, err = selftest.Run(context.Background(), config(tree, "selftest-child"))
	fmt.Println(err)
	return 0
}

func config(tree *cgroup.Tree, child string) selftest.Config {
	return selftest.Config{
		Tree: tree, Program: "/proc/self/exe", Env: append(os.Environ(), "NETLAB_CHILD="+child),
		Timeout: 200 * time.Millisecond,
	}
}

// run makes the test and checks that no leaf is left.
func run(t *testing.T, c selftest.Config) (selftest.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	r, err := selftest.Run(ctx, c)
	if names, list := c.Tree.List(); list != nil || len(names) != 0 {
		t.Errorf("left over: %q, %v", names, list)
	}
	return r, err
}

// table loads rules for the time of a test.
func table(t *testing.T, rules string) {
	t.Helper()
	cmd := exec.Command("nft", "-f", "-")
	cmd.Stdin = strings.NewReader("table inet selftest {\n" + rules + "\n}\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("nft: %v: %s", err, out)
	}
	t.Cleanup(func() { exec.Command("nft", "delete", "table", "inet", "selftest").Run() })
}

const hook = "chain out { type filter hook output priority 300; "

func wear(t *testing.T, tree *cgroup.Tree) {
	t.Helper()
	cookie, err := belt.NetnsCookie()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := tree.BoxesFD()
	if err != nil {
		t.Fatal(err)
	}
	b, err := belt.New(fd, belt.Fit(belt.Default(cookie)), nil)
	if err == nil {
		err = b.Apply()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name   string
		rules  string
		belt   bool
		failed selftest.Half
		leaf   selftest.Outcome
	}{
		{"nothing holds boxes", "", false, selftest.Leaf, selftest.Connected},
		{"belt alone", "", true, selftest.None, selftest.Silent},
		{"rule on boxes", hook + `socket cgroupv2 level 2 "minhost/boxes" meta l4proto tcp reject with tcp reset; }`,
			false, selftest.None, selftest.Refused},
		// CASES B20: loads, and never matches.
		{"rule with a wrong level", hook + `socket cgroupv2 level 3 "minhost/boxes" meta l4proto tcp reject with tcp reset; }`,
			false, selftest.Leaf, selftest.Connected},
		{"nobody gets through", hook + `meta l4proto tcp drop; }`, true, selftest.Control, selftest.NotTried},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := netlab.Tree(t)
			if c.rules != "" {
				table(t, c.rules)
			}
			if c.belt {
				wear(t, tree)
			}
			r, err := run(t, config(tree, "selftest-child"))
			if err != nil || r.FailedHalf() != c.failed || r.Leaf.Outcome != c.leaf {
				t.Errorf("%v, %v", r, err)
			}
		})
	}
}

// Whatever goes wrong in the second half, the leaf goes.
func TestLeafIsRemoved(t *testing.T) {
	tree := netlab.Tree(t)
	for child, word := range map[string]string{"flaky": "exit status 3", "hang": "deadline exceeded"} {
		if r, err := run(t, config(tree, child)); err == nil || !strings.Contains(err.Error(), word) || !strings.Contains(err.Error(), "self-test: leaf: ") {
			t.Errorf("%s: %v, %v", child, r, err)
		}
	}
	c := config(tree, "selftest-child")
	c.Program = "/nowhere/minhost"
	if r, err := run(t, c); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "self-test: control: ") {
		t.Errorf("%v, %v", r, err)
	}
}

// A self-test that was killed leaves a leaf; the next takes it away, and only such ones.
func TestSweep(t *testing.T) {
	tree := netlab.Tree(t)
	for _, name := range []string{selftest.LeafPrefix + "999999-1", selftest.LeafPrefix + "1-1", "web"} {
		leaf, err := tree.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		defer leaf.Close()
		defer leaf.Remove()
	}
	if r, err := selftest.Run(t.Context(), config(tree, "selftest-child")); err != nil {
		t.Errorf("%v, %v", r, err)
	}
	if names, err := tree.List(); err != nil || fmt.Sprint(names) != "[selftest-1-1 web]" {
		t.Errorf("%q, %v", names, err)
	}
}

// Run from inside a box it would take its own refusal for a broken host.
func TestNotInsideABox(t *testing.T) {
	leaf := netlab.Leaf(t, "web")
	if out := netlab.InLeaf(t, leaf.FD(), "whole"); !strings.Contains(out, `in the leaf "web"`) {
		t.Error(out)
	}
}
