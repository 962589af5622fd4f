package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// first installs and tries; it returns what is to become of the machine.
func first() string {
	if _, err := os.Stat(share + "/extra.sh"); err == nil {
		script()
		return "poweroff"
	}
	before, err := snapshot()
	if err == nil {
		err = os.WriteFile(beforeAll, []byte(strings.Join(before, "\n")), 0o600)
	}
	check("snapshot", err)
	r := run("", share+"/minhost", "finalize-install", "--yes", "--operator", runner)
	note("finalize-install took %v", r.took)
	if !check("finalize-install", r.good()) {
		note("%s", run("", share+"/minhost", "verify").out)
		journal()
		return "poweroff"
	}
	verify()
	use()
	flush()
	profiles()
	check("what is expected after the reboot is kept", run("", installed, "verify", "--before-reboot").good())
	check("the unit that looks after each boot", run("", "systemctl", "enable", "minhost-verify.service").good())
	check("boxes that start as early as they can", plantEarly())
	return "reboot"
}

// script is for looking at what only this kernel does, by hand.
func script() {
	cmd := exec.Command("/bin/sh", share+"/extra.sh")
	cmd.Stdout, cmd.Stderr = results, results
	check("script", cmd.Run())
}

// second finds everything right without anybody's help, and removes it.
func second() {
	// Half a minute here is half a second on a processor: what begins the table also loads its modules.
	note("%s", run("", "journalctl", "--no-pager", "-b", "-o", "short-monotonic", "-u", "minhost*", "-u", "systemd-networkd", "-u", "nftables").out)
	r := run("", installed, "verify", "--after-reboot", "--line", "--wait", "4m")
	check("everything came back by itself", r.good())
	note("%s", r.out) // with the time from the start of the kernel to ready, of each part
	note("%s", run("", "systemd-analyze", "time").out)
	verify()
	use()
	check("the unit that looks after each boot wrote its line", unitLine())
	earlyRan()
	r = run("", installed, "finalize-install", "--undo", "--yes")
	note("undo took %v", r.took)
	check("undo", r.good())
	check("undo leaves nothing", same())
	check("names of the outside world after undo", outerName())
	note("%s", run("", "/bin/sh", "-c", "dmesg --level emerg,alert,crit,err,warn | tail -20").out)
}

func unitLine() error {
	return eventually(5*time.Minute, "a line of minhost-verify.service", func() error {
		r := run("", "journalctl", "-b", "-o", "cat", "-u", "minhost-verify.service", "_COMM=minhost")
		if !strings.HasPrefix(r.out, "after reboot: ready: ") {
			return fmt.Errorf("%q", r.out)
		}
		return nil
	})
}

func verify() {
	// What hears of the network last may still be at work after a boot.
	err := eventually(3*time.Minute, "verify", func() error { return run("", installed, "verify").good() })
	if !check("verify as root", err) {
		journal()
	}
	note("%s", run("", installed, "verify").out)
	check("verify as an operator", run(runner, installed, "verify").good())
}

func journal() {
	note("%s", run("", "journalctl", "--no-pager", "-b", "-o", "short-monotonic", "-n", "60", "-u", "minhost*").out)
}

// snapshot is what an installation may have changed, a line each (verify/vmlab/snapshot.sh).
func snapshot() ([]string, error) {
	r := run("", "/bin/sh", share+"/snapshot.sh")
	lines := strings.Split(strings.TrimSuffix(r.out, "\n"), "\n")
	// Other numbers after each boot: jobs, eth0's and udev's notes about devices.
	lines = slices.DeleteFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, "job ") || strings.HasPrefix(l, "run /run/udev/") || strings.HasPrefix(l, "resolved") && strings.Contains(l, "(eth0)")
	})
	return lines, r.good()
}

func same() error {
	b, err := os.ReadFile(beforeAll)
	if err != nil {
		return err
	}
	now, err := snapshot()
	if err != nil {
		return err
	}
	before := strings.Split(string(b), "\n")
	var diff []string
	for _, l := range before {
		if !slices.Contains(now, l) {
			diff = append(diff, "- "+l)
		}
	}
	for _, l := range now {
		if !slices.Contains(before, l) {
			diff = append(diff, "+ "+l)
		}
	}
	if len(diff) > 0 {
		return fmt.Errorf("%s", strings.Join(diff, "\n"))
	}
	return nil
}
