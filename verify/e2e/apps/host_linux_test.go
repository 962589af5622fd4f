package apps

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

func TestMain(m *testing.M) { os.Exit(rig.Main(m, nil)) }

// cache is where programs.sh puts what is no Debian package.
func cache() string {
	if dir := os.Getenv("MINHOST_LAB"); dir != "" {
		return filepath.Join(dir, "apps")
	}
	return "/var/cache/minhost-lab/apps"
}

// need skips the test where a program is not installed, and returns its path.
func need(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Skipf("%s is not there: verify/e2e/apps/programs.sh installs it", pattern)
	}
	return found[len(found)-1]
}

// host is a host with minhost on it, whose programs resolve names of the zone: the port of every name
// server is the answerer's.
func host(t *testing.T) {
	t.Helper()
	rig.Bare(t)
	rig.Install(t)
	t.Cleanup(func() { nft(t, "delete table ip apps_names") })
	nft(t, "add table ip apps_names",
		"add chain ip apps_names out { type nat hook output priority -190; }",
		"add rule ip apps_names out ip daddr 127.0.0.1 udp dport 53 redirect to :15353",
		"add rule ip apps_names out ip daddr 127.0.0.1 tcp dport 53 redirect to :15353")
	if err := os.WriteFile("/etc/resolv.conf", []byte("nameserver 127.0.0.1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func nft(t *testing.T, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if out, err := exec.Command("/usr/sbin/nft", strings.Fields(l)...).CombinedOutput(); err != nil {
			t.Fatalf("nft %s: %v: %s", l, err, out)
		}
	}
}

// folder is a new folder of the user's.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/lib", "apps-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, rig.User, rig.User); err != nil {
		t.Fatal(err)
	}
	return dir
}

// home is where the runs of a test keep the secrets of their boxes.
func home(t *testing.T) []string {
	t.Helper()
	const dir = "/var/lib/apps-home"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, rig.User, rig.User); err != nil {
		t.Fatal(err)
	}
	return []string{"HOME=" + dir}
}

// write makes a file of the user's.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, rig.User, rig.User); err != nil {
		t.Fatal(err)
	}
}

// box runs a server in a box of this name.
func box(t *testing.T, name, dir string, command ...string) *rig.Process {
	t.Helper()
	args := append([]string{"run", "--name", name, "--", "/usr/bin/env", "-C", dir, "HOME=" + dir}, command...)
	return rig.Cmd{UID: rig.User, Env: home(t), Timeout: 5 * time.Minute}.Start(t, args...)
}

// join runs a program in a box that lives and returns what it printed.
func join(t *testing.T, name string, command ...string) rig.Result {
	t.Helper()
	return rig.Cmd{UID: rig.User, Env: home(t)}.Run(t, append([]string{"run", "--join", name, "--kind", "exec", "--"}, command...)...)
}

// address waits until a box listens on a port and says at which address the host finds it.
func address(t *testing.T, name string, port int, server *rig.Process) string {
	t.Helper()
	var found string
	rig.Eventually(t, 60*time.Second, fmt.Sprintf("box %s listens on %d", name, port), func() bool {
		if server.Ended() {
			t.Fatalf("the server of %s ended: %v", name, server.Wait())
		}
		var list struct {
			Leases []struct {
				Name, Address string
				Listeners     []struct {
					Address string
					Port    int
				}
			}
		}
		r := rig.As(t, rig.User, "ls", "--json")
		if err := json.Unmarshal([]byte(r.Stdout), &list); err != nil {
			t.Fatalf("ls: %v: %v", err, r)
		}
		for _, l := range list.Leases {
			for _, s := range l.Listeners {
				if l.Name == name && s.Port == port {
					found = l.Address
					if s.Address != l.Address {
						t.Fatalf("box %s at %s listens at %s", name, l.Address, s.Address)
					}
				}
			}
		}
		return found != ""
	})
	return found
}

// run runs a program of the host as the user.
func run(t *testing.T, limit time.Duration, path string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// refused says that an address and port cannot be reached from here.
func refused(t *testing.T, address string, port int) {
	t.Helper()
	c, err := net.DialTimeout("tcp", fmt.Sprintf("%s:%d", address, port), 5*time.Second)
	if err == nil {
		c.Close()
		t.Errorf("%s:%d answers", address, port)
	}
}
