package answerer

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/e2e/rig"
	"github.com/gominimal/minhost/verify/netlab"
)

func TestMain(m *testing.M) {
	os.Exit(rig.Main(m, nil, netlab.Children{"go-lookup": goLookup}))
}

// answererUser is one that no account has: the range that systemd keeps for dynamic users.
const answererUser = 61353

// answerer is the program's role over a zone file that the test writes.
type answerer struct {
	*rig.Process
	t testing.TB
}

// start runs it on the ports of the host, with lines of the zone file.
func start(t testing.TB, zone ...string) *answerer {
	t.Helper()
	publish(t, 1, zone...)
	a := &answerer{rig.Cmd{UID: answererUser}.Start(t, "resolverd"), t}
	t.Cleanup(func() {
		a.Signal(15)
		if r := a.Wait(); r.Status != 0 {
			t.Error(r)
		}
	})
	rig.Eventually(t, 10*time.Second, "the answerer answers", func() bool { return strings.Contains(a.Stderr(), "answering") })
	return a
}

// publish replaces the zone file as the helper does.
func publish(t testing.TB, generation int, zone ...string) {
	t.Helper()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("minhost-zone 1 %s %d %d\n%s", strings.TrimSpace(string(boot)), generation, len(zone), strings.Join(append(zone, ""), "\n"))
	if err := os.MkdirAll(rig.RunDir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(rig.RunDir, "zone")
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// nft runs one command of nft.
func nft(t testing.TB, text string) string {
	t.Helper()
	cmd := exec.Command("/usr/sbin/nft", "-f", "-")
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("nft: %v\n%s\n%s", err, text, out)
	}
	return string(out)
}

// memory reads a field of /proc/PID/status, in octets.
func (a *answerer) memory(field string) int {
	a.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.PID()))
	if err != nil {
		a.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			n, err := strconv.Atoi(strings.Fields(value)[0])
			if err != nil {
				a.t.Fatal(err)
			}
			return n << 10
		}
	}
	a.t.Fatalf("no %s", field)
	return 0
}
