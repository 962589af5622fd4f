package hosts

import (
	"os"
	"testing"

	"github.com/gominimal/minhost/verify/vmlab"
)

// TestPackageFiles: what a package drops into sysusers.d and tmpfiles.d makes the group whose members are operators,
// at once and without a login, and never touches what the services keep.
func TestPackageFiles(t *testing.T) {
	h := newHost(t, "bookworm")
	for _, kind := range []string{"sysusers.d", "tmpfiles.d"} {
		b, err := os.ReadFile("../../../packaging/" + kind + "/minhost.conf")
		if err != nil {
			t.Fatal(err)
		}
		h.Write("/usr/lib/"+kind+"/minhost.conf", string(b), 0o644)
	}
	h.boot()
	h.Sh("systemd-sysusers; systemd-tmpfiles --create; getent group minhost; test $(stat -c %a:%u /var/lib/minhost) = 700:0; useradd -m member")
	h.Must(vmlab.Program(vmlab.Minhost), "finalize-install", "--yes", "--operator", "root")
	run := []string{installed, "run", "--name", "x", "--egress", "deny", "--", "/bin/true"}
	if r := h.TryAs("member", run...); r.Status != 125 {
		t.Errorf("who is in no group may start a box: %v", r)
	}
	h.Must("usermod", "-aG", "minhost", "member")
	if r := h.TryAs("member", run...); r.Status != 0 {
		t.Errorf("a member of the group: %v", r)
	}
	before := h.Must("ls", "-lR", "/run/minhost", "/var/lib/minhost").Stdout
	h.Must("systemd-tmpfiles", "--create", "--clean", "--remove")
	if now := h.Must("ls", "-lR", "/run/minhost", "/var/lib/minhost").Stdout; now != before {
		t.Errorf("tmpfiles changed what is kept:\n%s\nbefore:\n%s", now, before)
	}
}
