package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// testsLimit bounds the tests of one package.
const testsLimit = 40 * time.Minute

// kernel runs the test binaries of the second disk on this kernel, with nothing else of the distribution
// running: /mnt/tests/list has a line each, FOLDER and the regular expression of the tests that are to
// run. It prints what lab prints, and powers the machine off.
func kernel() error {
	if port, err := os.OpenFile("/dev/ttyS1", os.O_RDWR, 0); err == nil {
		results = port
	}
	_ = run("", "stty", "-F", "/dev/ttyS1", "-opost", "-echo") // as in lab
	check("the second disk and the kernel's file systems", mounts())
	note("%s after %s", strings.TrimSpace(run("", "uname", "-r").out), uptime())
	list, err := os.ReadFile(share + "/tests/list")
	check("list of tests", err)
	for line := range strings.Lines(string(list)) {
		folder, pattern, _ := strings.Cut(strings.TrimSpace(line), " ")
		check(folder, runTests(folder, pattern))
		note("end of %s after %s", folder, uptime())
	}
	fmt.Fprintln(results, "END")
	return unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

// mounts is what systemd would have done.
func mounts() error {
	for _, m := range []struct{ source, target, kind, data string }{
		{"proc", "/proc", "proc", ""}, {"sysfs", "/sys", "sysfs", ""},
		{"cgroup2", "/sys/fs/cgroup", "cgroup2", "nsdelegate"},
		{"tmpfs", "/run", "tmpfs", "mode=755"}, {"tmpfs", "/tmp", "tmpfs", "mode=1777"},
		{"/dev/vdb", share, "ext4", ""},
	} {
		flags := uintptr(0)
		if m.target == share {
			flags = unix.MS_RDONLY
		}
		if err := unix.Mount(m.source, m.target, m.kind, flags, m.data); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	// udev would load it when its device is opened.
	if err := run("", "modprobe", "tun").good(); err != nil {
		return err
	}
	// A machine without a network has lo down.
	return run("", "ip", "link", "set", "lo", "up").good()
}

// What go test -v prints: who speaks from here on, and the end of a test, indented below its parent's.
var (
	speaks = regexp.MustCompile(`^=== (?:RUN|NAME|CONT|PAUSE) +(\S+)`)
	ended  = regexp.MustCompile(`^ *--- (PASS|FAIL|SKIP): (\S+) \(`)
)

// runTests passes the outcome of each test on, under the folder's name, and what the ones that failed
// printed. An error when the binary failed otherwise, or ran nothing.
func runTests(folder, pattern string) error {
	dir := share + "/tests/" + folder
	ctx, cancel := context.WithTimeout(context.Background(), testsLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, dir+"/test", "-test.v", "-test.run="+pattern)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	cmd.Env = []string{"LC_ALL=C.UTF-8", "HOME=/root", "PATH=" + path,
		"MINHOST_E2E_BIN=" + share + "/tests/bin", "NETLAB_SLOW=10"}
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	done := make(chan error, 1)
	go func() {
		err := cmd.Run()
		_ = in.Close() // never fails
		done <- err
	}()
	failed, passed := relay(folder, out)
	err := <-done
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("still ran after %v", testsLimit)
	case err != nil && failed == 0:
		return fmt.Errorf("no test failed, but: %w", err)
	case passed+failed == 0:
		return errors.New("no test ran")
	}
	return nil // the tests have spoken
}

// relay prints a line for each test, with what a failed or skipped one said.
func relay(folder string, out io.Reader) (failed, passed int) {
	said, who := map[string][]string{}, ""
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if m := speaks.FindStringSubmatch(lines.Text()); m != nil {
			who = m[1]
			continue
		}
		m := ended.FindStringSubmatch(lines.Text())
		if m == nil {
			said[who] = append(said[who], lines.Text())
			continue
		}
		name, words := folder+"/"+m[2], said[m[2]]
		switch m[1] {
		case "FAIL":
			failed++
			check(name, errors.New(strings.Join(append([]string{"failed"}, words[max(0, len(words)-30):]...), "\n")))
		case "SKIP":
			fmt.Fprintf(results, "SKIP %s\t%s\n", name, strings.Join(words[max(0, len(words)-1):], " "))
		default:
			passed++
			check(name, nil)
		}
	}
	_, _ = io.Copy(io.Discard, out) // behind a line that is too long
	if passed+failed == 0 {
		note("%s", strings.Join(said[""], "\n"))
	}
	return failed, passed
}
