package vm

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// errMissing is something that this machine lacks for the lab.
var errMissing = errors.New("missing")

// packages of an image, beside systemd, D-Bus, nftables and iproute2: names, what the tests of single
// packages run, and AppArmor, which a Debian host has.
var packages = []string{"systemd-resolved", "libnss-resolve", "procps", "curl", "kmod", "linux-image-cloud-amd64",
	"conntrack", "iptables", "iputils-ping", "python3-minimal", "netcat-openbsd", "apparmor"}

// programs that are needed: to make an image, and to boot it.
var (
	makers  = []string{"debootstrap", "mke2fs", "xz", "zstd"}
	booters = []string{"qemu-system-x86_64", "mke2fs", "cpio"}
)

func lacks(programs []string) error {
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			return fmt.Errorf("%w: %s", errMissing, p)
		}
	}
	return nil
}

func cache() string {
	if dir := os.Getenv("MINHOST_LAB"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "minhost-lab")
	}
	return "/var/cache/minhost-lab"
}

// image returns the folder of a suite's image (vmlinuz, release, disk, modules) and makes it when it
// is not there, which takes minutes. Another recipe is another folder.
func image(suite string) (string, error) {
	sum := sha256.New()
	for _, script := range []string{"../mkroot.sh", "mkimage.sh"} {
		b, err := os.ReadFile(script)
		if err != nil {
			return "", err
		}
		sum.Write(b)
	}
	sum.Write([]byte(strings.Join(packages, " ")))
	dir := filepath.Join(cache(), "vm-"+suite+"-"+hex.EncodeToString(sum.Sum(nil)[:6]))
	if err := os.MkdirAll(cache(), 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := lacks(makers); err != nil {
		return "", err
	}
	root := dir + ".root"
	defer os.RemoveAll(root)
	out, err := exec.Command("/bin/sh", append([]string{"../mkroot.sh", suite, root}, packages...)...).CombinedOutput()
	if err != nil {
		text := string(out)
		if strings.Contains(text, "Failed getting release file") || strings.Contains(text, "Couldn't download") {
			return "", fmt.Errorf("%w: a mirror of Debian %s that can be reached", errMissing, suite)
		}
		return "", fmt.Errorf("make root of %s: %w\n%s", suite, err, text[max(0, len(text)-2000):])
	}
	if out, err := exec.Command("/bin/sh", "mkimage.sh", root, dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("make image of %s: %w\n%s", suite, err, out)
	}
	return dir, nil
}

const module = "github.com/gominimal/minhost/"

// build makes a program for the guest; flags are of go build.
func build(file, pkg string, flags ...string) error {
	args := append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", file}, flags...)
	cmd := exec.Command("go", append(args, module+pkg)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

func copyFile(from, to string, mode os.FileMode) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, mode)
}
