package vm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// kernelTests are packages whose tests of the kernel run on Debian's kernels as well, and which of their tests
// do in make test-vm; $MINHOST_VM_ALL runs all (make test-vm-all), which takes an hour a suite.
var kernelTests = []struct{ folder, some string }{
	{"linux/cgroup/cgrouptest", "."},
	{"linux/belt/belttest", "."},
	{"linux/nft/nfttest", "^(TestWithBelt|TestMatrix|TestRefillKeepsFlows|TestHostMarks|TestDenySubnets|TestFriend|TestForgedMark|TestTimedRuleEndsByItself|TestDamage)$"},
	{"linux/localhost/localhosttest", "^(TestBoxBindsItsOwnOnly|TestNobodyElseBinds|TestUnknownLeaf|TestReplacedWithoutGap|TestNamespaceInABox)$"},
	{"verify/e2e/boxes", "^(TestEgress|TestIngress|TestNone|TestOwnIP|TestUpdate|TestOwnLocalhost|TestNamespacesInside|TestLookups|TestHelperKilled)$"},
}

// TestKernel runs tests of single packages on the suites' own kernels: the table, the belt, own localhosts, the
// tree, and boxes from one end to the other. Each of them is a subtest here.
func TestKernel(t *testing.T) {
	for _, suite := range suites {
		t.Run(suite, func(t *testing.T) {
			dir, err := image(suite)
			must(t, err)
			work := t.TempDir()
			kernelShare(t, work)
			initrd(t, dir, work)
			ends := 0
			lines, wait := boot(t, dir, work, kernelLimit, "lab=kernel")
			for line := range lines {
				ends += report(t, line)
			}
			if err := wait(); err != nil || ends != 1 {
				console, _ := os.ReadFile(filepath.Join(work, "console")) // for the message only
				t.Errorf("%d of 1 boots came to their end; qemu: %v\n%s", ends, err, console[max(0, len(console)-4000):])
			}
		})
	}
}

// kernelLimit is for all of them on a machine that does much else.
const kernelLimit = 90 * time.Minute

// kernelShare makes the second disk: for each folder its test binary and its testdata, the programs that
// the tests of boxes want, and the list.
func kernelShare(t *testing.T, work string) {
	t.Helper()
	dir := filepath.Join(work, "share", "tests")
	must(t, os.MkdirAll(filepath.Join(dir, "bin"), 0o755),
		build(filepath.Join(dir, "bin", "minhost"), "cmd/minhost", "-ldflags", "-s -w -X main.version=e2e"),
		build(filepath.Join(dir, "bin", "minhost-faulty"), "cmd/minhost", "-ldflags", "-s -w -X main.version=e2e", "-tags", "faultpoints"))
	var list strings.Builder
	for _, k := range kernelTests {
		if only := os.Getenv("MINHOST_VM_ONLY"); only != "" && !slices.Contains(strings.Split(only, ","), filepath.Base(k.folder)) {
			continue
		}
		to := filepath.Join(dir, k.folder)
		must(t, os.MkdirAll(to, 0o755))
		cmd := exec.Command("go", "test", "-c", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(to, "test"), module+k.folder)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build tests of %s: %v\n%s", k.folder, err, out)
		}
		from := filepath.Join("../../..", k.folder, "testdata")
		if _, err := os.Stat(from); err == nil {
			must(t, os.CopyFS(filepath.Join(to, "testdata"), os.DirFS(from)))
		}
		pattern := k.some
		if os.Getenv("MINHOST_VM_ALL") != "" {
			pattern = "."
		}
		if p := os.Getenv("MINHOST_VM_RUN"); p != "" {
			pattern = p
		}
		fmt.Fprintln(&list, k.folder, pattern)
	}
	must(t, os.WriteFile(filepath.Join(dir, "list"), []byte(list.String()), 0o644))
	share(t, work)
}
