package vm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMain prints "SKIP vm: <missing thing>" where no machine can be booted, and fails then when
// REQUIRE lists vm.
func TestMain(m *testing.M) {
	err := lacks(booters)
	if err == nil && os.Geteuid() != 0 {
		err = fmt.Errorf("%w: root, to make images", errMissing)
	}
	for _, suite := range suites {
		if err == nil {
			_, err = image(suite)
		}
	}
	switch {
	case errors.Is(err, errMissing):
		_, what, _ := strings.Cut(err.Error(), ": ")
		fmt.Printf("SKIP vm: %s\n", what)
		if slices.Contains(strings.Split(os.Getenv("REQUIRE"), ","), "vm") {
			os.Exit(1)
		}
		os.Exit(0)
	case err != nil:
		fmt.Fprintln(os.Stderr, "vm:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

var suites = []string{"bookworm", "trixie"}

// limit of a machine's whole life: two to four minutes on two cores that do little else.
const limit = 20 * time.Minute

// TestLife: install, use, flush the ruleset, reboot, use, undo. Each check of the guest is a subtest.
func TestLife(t *testing.T) {
	for _, suite := range suites {
		t.Run(suite, func(t *testing.T) {
			dir, err := image(suite)
			if err != nil {
				t.Fatal(err)
			}
			work := t.TempDir()
			share(t, work)
			initrd(t, dir, work)
			ends := 0
			lines, wait := boot(t, dir, work)
			for line := range lines {
				ends += report(t, line)
			}
			if err := wait(); err != nil || ends != 2 && os.Getenv("MINHOST_VM_SCRIPT") == "" {
				console, _ := os.ReadFile(filepath.Join(work, "console")) // for the message only
				t.Errorf("%d of 2 boots came to their end; qemu: %v\n%s", ends, err, console[max(0, len(console)-4000):])
			}
		})
	}
}

// report turns a line of the guest into a subtest, and returns 1 for the last line of a boot.
func report(t *testing.T, line string) int {
	kind, text, _ := strings.Cut(line, " ")
	switch kind {
	case "PASS":
		t.Run(text, func(*testing.T) {})
	case "FAIL":
		name, why, _ := strings.Cut(text, ": ")
		t.Run(name, func(t *testing.T) { t.Error(strings.ReplaceAll(why, " | ", "\n")) })
	case "END":
		return 1
	default:
		t.Log(text)
	}
	return 0
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// share makes the second disk: the programs, and what the guest needs of this folder.
func share(t *testing.T, work string) {
	t.Helper()
	dir := filepath.Join(work, "share")
	must(t, os.Mkdir(dir, 0o755),
		build(filepath.Join(dir, "minhost"), "cmd/minhost"),
		build(filepath.Join(dir, "guest"), "verify/vmlab/vm/guest"),
		build(filepath.Join(dir, "probe"), "verify/vmlab/probe"),
		copyFile("../snapshot.sh", filepath.Join(dir, "snapshot.sh"), 0o644))
	if script := os.Getenv("MINHOST_VM_SCRIPT"); script != "" {
		must(t, copyFile(script, filepath.Join(dir, "extra.sh"), 0o644))
	}
	command(t, work, "mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", "share", "share.img", "96M")
}

// initrd is the guest program as init, and the modules in the order of their names.
func initrd(t *testing.T, image, work string) {
	t.Helper()
	dir := filepath.Join(work, "initrd.d")
	for _, d := range []string{"m", "dev", "new"} {
		must(t, os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	must(t, copyFile(filepath.Join(work, "share", "guest"), filepath.Join(dir, "init"), 0o755))
	modules, err := filepath.Glob(filepath.Join(image, "modules", "*.ko"))
	must(t, err)
	for _, m := range modules {
		must(t, copyFile(m, filepath.Join(dir, "m", filepath.Base(m)), 0o644))
	}
	command(t, dir, "/bin/sh", "-ec", "find . | cpio -o -H newc --quiet >../initrd")
}

func command(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

// boot starts the machine; the lines end when it is powered off. Nothing is written to the image.
func boot(t *testing.T, image, work string) (<-chan string, func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	kernelLine := "root=/dev/vda rw console=ttyS0,115200 quiet net.ifnames=0 mitigations=off audit=0 TERM=dumb systemd.show_status=0"
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", "-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max", "-m", "1024", "-smp", "2",
		"-nodefaults", "-no-user-config", "-action", "panic=exit-failure", "-display", "none", "-nic", "none",
		"-kernel", filepath.Join(image, "vmlinuz"), "-initrd", "initrd", "-append", kernelLine,
		"-drive", "file="+filepath.Join(image, "disk")+",format=raw,if=virtio,snapshot=on,cache=unsafe",
		"-drive", "file=share.img,format=raw,if=virtio,readonly=on",
		"-chardev", "file,id=c0,path=console", "-serial", "chardev:c0", "-chardev", "stdio,id=c1,signal=off", "-serial", "chardev:c1",
		"-device", "virtio-rng-pci")
	cmd.Dir = work
	cmd.Env = append(os.Environ(), "TMPDIR="+work) // what the guest writes to its disk
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	// Held open: at its end qemu's terminal would have an end of file.
	in, err := cmd.StdinPipe()
	must(t, err, cmd.Start())
	lines := make(chan string)
	go func() {
		defer close(lines)
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadString('\n')
			if line = strings.TrimRight(line, "\r\n"); line != "" {
				lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	return lines, func() error {
		_ = in.Close() // it has ended
		err := cmd.Wait()
		if ctx.Err() != nil {
			err = fmt.Errorf("still ran after %v", limit)
		}
		_, _ = io.Copy(io.Discard, out) // nothing is left
		if err != nil {
			err = fmt.Errorf("%w: %s", err, stderr.String())
		}
		return err
	}
}
