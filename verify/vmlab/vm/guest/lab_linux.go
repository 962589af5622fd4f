package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	share     = "/mnt"               // the second disk
	phaseFile = "/var/tmp/lab-boots" // how many boots there were
	beforeAll = "/var/tmp/lab-before"
	runner    = "runner" // the account of the root that is not root
	installed = "/usr/local/lib/minhost/minhost"
	path      = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// results is the second serial port: lines "PASS name", "FAIL name", a tab and why, SKIP like it, "LOG text".
var results = os.Stdout

// lab runs what belongs to this boot and ends the machine.
func lab() {
	port, err := os.OpenFile("/dev/ttyS1", os.O_RDWR, 0)
	if err == nil {
		results = port
	}
	// A line discipline that echoes what qemu never sends, and writes carriage returns.
	_ = exec.Command("stty", "-F", "/dev/ttyS1", "-opost", "-echo").Run()
	verb := "poweroff"
	boots, _ := os.ReadFile(phaseFile) // absent at the first
	note("boot %d after %s on %s", len(boots), uptime(), strings.TrimSpace(run("", "uname", "-r").out))
	if err := os.WriteFile(phaseFile, append(boots, 'x'), 0o600); err != nil {
		note("boot count: %v", err)
	}
	switch check("the outside world is there", world()); len(boots) {
	case 0:
		verb = first()
	case 1:
		second()
	}
	note("end after %s", uptime())
	fmt.Fprintln(results, "END")
	_ = exec.Command("systemctl", "--no-block", verb).Run() // qemu's time limit tells
}

func uptime() string {
	b, _ := os.ReadFile("/proc/uptime")
	up, _, _ := strings.Cut(string(b), " ")
	return up + " s"
}

func note(format string, args ...any) {
	for line := range strings.Lines(fmt.Sprintf(format, args...)) {
		fmt.Fprintln(results, "LOG", strings.TrimRight(line, "\n"))
	}
}

// check prints one result, and whether it was good.
func check(name string, err error) bool {
	if err == nil {
		fmt.Fprintln(results, "PASS", name)
		return true
	}
	fmt.Fprintf(results, "FAIL %s\t%s\n", name, strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", " | "))
	return false
}

type result struct {
	status   int
	out, err string
	took     time.Duration
}

// good is an error for a status other than 0.
func (r result) good() error {
	if r.status == 0 {
		return nil
	}
	return fmt.Errorf("status %d after %v\n%s\n%s", r.status, r.took.Round(time.Millisecond), r.out, r.err)
}

// run runs a program to its end as that account ("" is root).
func run(user, program string, args ...string) result {
	if user != "" {
		args = append([]string{"--reuid", user, "--regid", user, "--init-groups", "--", program}, args...)
		program = "/usr/bin/setpriv"
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = "/", &out, &errs, time.Second
	cmd.Env = []string{"LC_ALL=C.UTF-8", "TERM=dumb", "PATH=" + path}
	start := time.Now()
	err := cmd.Run()
	r := result{0, out.String(), errs.String(), time.Since(start)}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		r.status = exit.ExitCode()
	case err != nil:
		r.status, r.err = -1, r.err+err.Error()
	}
	return r
}

// world makes another host at the end of a cable, with servers, and waits until its names work.
func world() error {
	for _, line := range []string{
		"ip netns add world", "ip link add eth0 type veth peer name far netns world",
		"ip -n world link set lo up", "ip -n world link set far up",
		"ip -n world address add " + outside + "/24 dev far", "ip -n world address add " + outside6 + "/64 dev far nodad",
	} {
		if err := run("", "/bin/sh", "-ec", line).good(); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	start := func(args ...string) error { return exec.Command(args[0], args[1:]...).Start() }
	if err := start("/sbin/ip", "netns", "exec", "world", share+"/guest", "serve", "[::]:8080", "[::]:8081", "names"); err != nil {
		return err
	}
	if err := start(share+"/guest", "serve", "127.0.0.1:9000", "[::1]:9000"); err != nil {
		return err
	}
	return eventually(3*time.Minute, "a name of the outside world resolves", outerName)
}

func outerName() error {
	if r := run("", "getent", "ahostsv4", "www.example.com"); !strings.HasPrefix(r.out, outside) {
		return fmt.Errorf("getent www.example.com: %v, %q", r.good(), r.out)
	}
	return nil
}

func eventually(within time.Duration, what string, f func() error) error {
	for end := time.Now().Add(within); ; time.Sleep(200 * time.Millisecond) {
		err := f()
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("not within %v: %s: %w", within, what, err)
		}
	}
}
