package fakedarwin

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// Accounts of every model: ada uses the Mac, bob is another one.
const (
	Ada    = 501
	Bob    = 502
	passwd = "root:x:0:0::/var/root:/bin/sh\nada:x:501:20::/Users/ada:/bin/sh\nbob:x:502:20::/Users/bob:/bin/sh\nnobody:x:65534:65534::/var/empty:/bin/sh\n"
)

// tools are what the scripts and the tests need besides the model's programs.
var tools = []string{"cp", "mktemp", "rm", "chmod", "cat", "sleep", "mkdir", "true", "grep", "tail", "tee", "date", "tar", "gzip", "basename", "diff"}

// Build makes the root of a Mac below dir, an empty folder in a mount namespace of the test's own. program
// is the built model program.
func Build(dir, program string) error {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount %s: %w", dir, err)
	}
	for _, d := range []string{"Library/LaunchDaemons", "Library/Application Support", "Users/ada", "Users/bob", "private/etc", "private/var/run",
		"private/var/log", "private/var/db/com.apple.xpc.launchd", "private/var/empty", "bin", "sbin", "usr/bin", "usr/sbin", "proc", "dev", ".linux"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "private/tmp"), 0o777); err != nil {
		return err
	}
	// As on every Mac; a path through one of them is not the path that root may trust.
	links := map[string]string{"etc": "private/etc", "var": "private/var", "tmp": "private/tmp", "lib": ".linux/lib", "lib64": ".linux/lib64", "usr/lib": "../.linux/lib",
		"usr/share": "../.linux/share", "usr/bin/true": "/.linux/bin/true", "usr/bin/perl": "/.linux/bin/perl"}
	for _, t := range tools {
		links["bin/"+t] = "/.linux/bin/" + t
	}
	links["bin/sh"] = "/.linux/bin/sh"
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "private/etc/passwd"), []byte(passwd), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "dev/null"), nil, 0o666); err != nil {
		return err
	}
	for from, to := range map[string]string{"/usr": ".linux", "/dev/null": "dev/null", "/proc": "proc"} {
		if err := syscall.Mount(from, filepath.Join(dir, to), "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
			return fmt.Errorf("bind %s: %w", from, err)
		}
	}
	for id, home := range map[int]string{Ada: "Users/ada", Bob: "Users/bob"} {
		if err := os.Chown(filepath.Join(dir, home), id, 20); err != nil {
			return err
		}
	}
	return addPrograms(dir, program)
}

// addPrograms: one file under many names, and sudo, which is set-user-id.
func addPrograms(dir, program string) error {
	one := filepath.Join(dir, ".model")
	if err := Copy(program, one, 0o755); err != nil {
		return err
	}
	for _, p := range Programs {
		err := os.Link(one, filepath.Join(dir, p))
		if p == "/usr/bin/sudo" {
			os.Remove(filepath.Join(dir, p))
			err = Copy(program, filepath.Join(dir, p), 0o755|os.ModeSetuid)
		}
		if err != nil {
			return err
		}
	}
	return os.Chmod(filepath.Join(dir, "private/tmp"), 0o777|os.ModeSticky)
}

// Copy makes a file of root's with this mode.
func Copy(from, to string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, in); err == nil {
		err = out.Chmod(mode)
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return err
}
