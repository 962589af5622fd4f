package vm

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// share makes the second disk: the programs, and what the guest needs of this folder.
func share(t *testing.T, work string) {
	t.Helper()
	dir := filepath.Join(work, "share")
	must(t, os.MkdirAll(dir, 0o755),
		build(filepath.Join(dir, "minhost"), "cmd/minhost"),
		build(filepath.Join(dir, "guest"), "verify/vmlab/vm/guest"),
		build(filepath.Join(dir, "probe"), "verify/vmlab/probe"),
		copyFile("../../../linux/apparmor/testdata/minhost", filepath.Join(dir, "apparmor"), 0o644),
		copyFile("../snapshot.sh", filepath.Join(dir, "snapshot.sh"), 0o644))
	if script := os.Getenv("MINHOST_VM_SCRIPT"); script != "" {
		must(t, copyFile(script, filepath.Join(dir, "extra.sh"), 0o644))
	}
	command(t, work, "mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", "share", "share.img", "256M")
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

// boot starts the machine; the lines end when it is powered off. Nothing is written to the image. The words
// are added to the kernel's command line. Every frame of its network device goes to the file frames.
func boot(t *testing.T, image, work string, limit time.Duration, words ...string) (<-chan string, func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	// Without panic=-1 a kernel that panicked would be waited for until the limit.
	kernelLine := strings.Join(words, " ") + " panic=-1 root=/dev/vda rw console=ttyS0,115200 quiet net.ifnames=0 mitigations=off audit=0 TERM=dumb systemd.show_status=0"
	// One processor: with two, what one patches into the kernel's text (a jump label, at the first and the last rule
	// of a hook) may meet the other in an old translation, which is a panic ("int3") of QEMU's making (7.2).
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", "-accel", "tcg,tb-size=512", "-cpu", "max", "-m", "1024", "-smp", "1",
		"-nodefaults", "-no-user-config", "-action", "panic=exit-failure", "-display", "none",
		// A network of its own that leads nowhere: it is there to be recorded.
		"-netdev", "user,id=n0,restrict=on,net=203.0.113.0/24,host=203.0.113.1,ipv6-net=2001:db8:71::/64,ipv6-host=2001:db8:71::1",
		"-device", "virtio-net-pci,netdev=n0,romfile=", "-object", "filter-dump,id=f0,netdev=n0,file=frames",
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
