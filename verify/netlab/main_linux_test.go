package netlab

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// TestInside holds what the package comment promises.
func TestInside(t *testing.T) {
	if os.Getpid() != 1 {
		t.Errorf("pid %d, want 1", os.Getpid())
	}
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, line := range strings.Split(string(b), "\n") {
		f := strings.Fields(line)
		if strings.Contains(line, " - cgroup2 ") && f[4] == "/sys/fs/cgroup" {
			found = f[3] == "/"
		}
	}
	if !found {
		t.Error("no cgroup2 at /sys/fs/cgroup with root /")
	}
	for _, dir := range []string{"/run/minhost", "/var/lib/minhost"} {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s of the machine is visible", dir)
		}
	}
	out, err := exec.Command("ip", "-o", "link").CombinedOutput()
	if err != nil || strings.Count(string(out), "\n") != 1 {
		t.Errorf("links: %v\n%s", err, out)
	}
	if err := os.WriteFile("/etc/netlab-test", nil, 0o644); err != nil {
		t.Error(err)
	}
}
