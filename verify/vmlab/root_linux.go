package vmlab

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

//go:embed mkroot.sh
var mkroot string

// packages of every root, beside systemd, D-Bus, nftables and iproute2.
var packages = []string{"systemd-resolved", "libnss-resolve", "procps", "curl", "bind9-dnsutils", "python3-minimal", "iputils-ping"}

//go:embed mkfull.sh
var mkfull string

// kinds are roots with more in them; "bookworm-full" is one of a suite. Those of full are all installed and
// none is enabled.
var kinds = map[string][]string{
	"full":   {"network-manager", "ifupdown", "firewalld", "ufw", "docker.io", "iptables", "dnsmasq", "unbound", "apparmor"},
	"sysv":   {"sysvinit-core", "sysv-rc", "initscripts", "ifupdown"},
	"openrc": {"sysvinit-core", "openrc", "initscripts", "ifupdown"},
}

// errMissing is something that the machine lacks for the lab.
var errMissing = errors.New("missing")

// cache is the folder of the roots.
func cache() string {
	if dir := os.Getenv("MINHOST_LAB"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "minhost-lab")
	}
	return "/var/cache/minhost-lab"
}

// rootOf is where the root of a suite is, made or not: another recipe is another folder.
func rootOf(suite string) string {
	recipe := mkroot + strings.Join(packages, " ")
	if _, kind, more := strings.Cut(suite, "-"); more {
		recipe += mkfull + strings.Join(kinds[kind], " ")
	}
	sum := sha256.Sum256([]byte(recipe))
	return filepath.Join(cache(), suite+"-"+hex.EncodeToString(sum[:6]))
}

// makeRoot makes the root of a suite when it is not there. Two test binaries that want the same one
// wait for each other.
func makeRoot(suite string) error {
	root := rootOf(suite)
	if _, err := os.Stat(root); err == nil {
		return nil
	}
	if _, err := exec.LookPath("debootstrap"); err != nil {
		return fmt.Errorf("%w: debootstrap", errMissing)
	}
	if err := os.MkdirAll(cache(), 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(root+".lock", os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	if _, err := os.Stat(root); err == nil {
		return nil
	}
	script, args := mkroot, append([]string{suite, root}, packages...)
	if base, kind, more := strings.Cut(suite, "-"); more {
		if err := makeRoot(base); err != nil {
			return err
		}
		script, args = mkfull, append([]string{rootOf(base), root}, kinds[kind]...)
	}
	cmd := exec.Command("/bin/sh", append([]string{"-s", "--"}, args...)...)
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	// debootstrap: "E: Failed getting release file URL", "E: Couldn't download packages: ..."
	if bytes.Contains(out, []byte("Failed getting release file")) || bytes.Contains(out, []byte("Couldn't download")) {
		return fmt.Errorf("%w: a mirror of Debian %s that can be reached", errMissing, suite)
	}
	return fmt.Errorf("make root of %s: %w\n%s", suite, err, tail(out, 2000))
}

func tail(b []byte, n int) []byte {
	if len(b) > n {
		return b[len(b)-n:]
	}
	return b
}
