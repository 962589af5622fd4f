package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// newRoot is a folder of the initial ram disk.
const newRoot = "/new"

// boot makes the first disk the file system, and becomes its init; or, where the kernel's command line has
// lab=kernel (what it does not know and has no dot is its init's environment), runs tests without it.
// It returns only on failure.
func boot() error {
	if err := switchRoot(); err != nil {
		return err
	}
	// The kernel gives its init none that finds ip.
	if err := os.Setenv("PATH", path); err != nil {
		return err
	}
	if os.Getenv("lab") == "kernel" {
		return kernel()
	}
	if err := wire(); err != nil {
		return err
	}
	return unix.Exec("/sbin/init", []string{"/sbin/init"}, os.Environ())
}

// switchRoot makes the first disk the file system.
func switchRoot() error {
	modules, err := filepath.Glob("/m/*.ko")
	if err != nil {
		return err
	}
	for _, m := range modules {
		if err := loadModule(m); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("load %s: %w", m, err)
		}
	}
	if err := unix.Mount("devtmpfs", "/dev", "devtmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount /dev: %w", err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		err := unix.Mount("/dev/vda", newRoot, "ext4", unix.MS_NOATIME, "")
		if err == nil {
			break
		}
		if time.Now().After(end) {
			return fmt.Errorf("mount /dev/vda: %w", err)
		}
	}
	for _, step := range []func() error{
		func() error { return unix.Mount("/dev", newRoot+"/dev", "", unix.MS_MOVE, "") },
		func() error { return os.Chdir(newRoot) },
		func() error { return unix.Mount(".", "/", "", unix.MS_MOVE, "") },
		func() error { return unix.Chroot(".") },
		func() error { return os.Chdir("/") },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("switch root: %w", err)
		}
	}
	console, err := os.OpenFile("/dev/console", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	for fd := range 3 {
		if err := unix.Dup3(int(console.Fd()), fd, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	return nil
}

func loadModule(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.FinitModule(int(f.Fd()), "", 0)
}
