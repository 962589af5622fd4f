package hosts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gominimal/minhost/verify/vmlab"
)

// deb makes the Debian package of a built program with nfpm, as "make packages" does.
func deb(t *testing.T, nfpm, program, version string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "minhost.deb")
	cmd := exec.Command(nfpm, "package", "--config", "packaging/nfpm.yaml", "--packager", "deb", "--target", file)
	cmd.Dir = "../../.."
	cmd.Env = append(os.Environ(), "VERSION="+version, "ARCH=amd64", "PROGRAM="+vmlab.Built(program))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("nfpm: %v\n%s", err, out)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPackage: the package is installed, prepares nothing by itself, is upgraded under a live box, refuses to go while
// one lives, and takes everything back when it goes.
func TestPackage(t *testing.T) {
	nfpm, err := exec.LookPath("nfpm")
	if err != nil {
		t.Skip("no nfpm: go install github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.48.0")
	}
	h := newHost(t, "bookworm")
	h.Write("/srv/1.deb", deb(t, nfpm, vmlab.Minhost, "1.0.0"), 0o644)
	h.Write("/srv/2.deb", deb(t, nfpm, vmlab.Next, "2.0.0"), 0o644)
	h.boot()
	before := h.Snapshot()
	if r := h.Must("dpkg", "-i", "/srv/1.deb"); !strings.Contains(r.Stdout, "next: minhost finalize-install --show") {
		t.Errorf("%v", r)
	}
	h.Sh("test -s /usr/share/man/man8/minhost.8; getent group minhost; test ! -e " + installed + "; test $(stat -c %a:%u /var/lib/minhost) = 700:0")
	h.Must("/usr/bin/minhost", "finalize-install", "--yes", "--operator", vmlab.Runner)
	h.verify()
	box := h.Start(vmlab.Runner, "/usr/bin/minhost", "run", "--name", "live", "--egress", "deny", "--", "/bin/sh", "-c", "echo up; exec sleep 600")
	box.Await("up")
	h.Must("dpkg", "-i", "/srv/2.deb")
	if r := h.TryAs(vmlab.Runner, installed, "status"); !strings.Contains(r.Stdout, "lab-next") || box.Ended() {
		t.Errorf("upgraded: %v; the box: %s", r, box.Stderr())
	}
	h.verify()
	if r := h.Try("dpkg", "-r", "minhost"); r.Status == 0 || !strings.Contains(r.Stdout+r.Stderr, "live") {
		t.Errorf("removed under a live box: %v", r)
	}
	h.verify()
	if err := box.Stop(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	h.Must("dpkg", "--purge", "minhost")
	h.Sh("test ! -e /usr/bin/minhost; groupdel minhost; rm -f /etc/group- /etc/gshadow-")
	now := h.Snapshot()
	// What dpkg keeps about packages in general.
	for _, l := range vmlab.Diff(before, now) {
		if !strings.Contains(l, " /var/lib/dpkg") && !strings.Contains(l, " /etc/group-") && !strings.Contains(l, " /etc/gshadow-") {
			t.Error(l)
		}
	}
}
