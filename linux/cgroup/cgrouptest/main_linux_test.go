package cgrouptest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/gominimal/minhost/linux/cgroup"
	"github.com/gominimal/minhost/verify/netlab"
)

func TestMain(m *testing.M) {
	os.Exit(netlab.Main(m, netlab.Children{"tree": treeChild, "escape": escapeChild, "forker": forkerChild}))
}

// treeChild has many children: pids of children that came and went are all in the leaf.
func treeChild([]string) int {
	cmd := exec.Command("/bin/sleep", "60")
	if err := cmd.Start(); err != nil {
		return 1
	}
	fmt.Println(cmd.Process.Pid)
	cmd.Wait()
	return 0
}

// escapeChild tries to write its pid into each cgroup.procs named by an argument, prints for each whether
// that failed, and then where it is.
func escapeChild(args []string) int {
	for _, path := range args {
		err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())), 0)
		fmt.Println(err != nil)
	}
	b, _ := os.ReadFile("/proc/self/cgroup")
	// The only line, or one of several beside cgroup v1.
	_, at, _ := bytes.Cut(append([]byte("\n"), b...), []byte("\n0::"))
	fmt.Println(string(bytes.TrimSpace(at)))
	return 0
}

// forkerChild forks for ever.
func forkerChild([]string) int {
	fmt.Println("ready")
	for {
		cmd := exec.Command("/bin/sleep", "0.01")
		if cmd.Start() == nil {
			go cmd.Wait()
		}
		time.Sleep(time.Millisecond)
	}
}

func mount(t *testing.T) cgroup.Mount {
	t.Helper()
	m, err := cgroup.FindMountHere()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func open(t *testing.T, rel string, gate func(string) error) *cgroup.Tree {
	t.Helper()
	tree, err := cgroup.Open(mount(t), rel, gate)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return tree
}
