package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// confining is a profile that allows everything but user namespaces: what Ubuntu's sysctl, which Debian's kernels
// have not, does to programs without one. From Linux 6.7 on they are mediated.
const confining = "abi <abi/4.0>,\nprofile lab " + installed + " {\n  file,\n  capability,\n  network,\n  signal,\n  ptrace,\n" +
	"  unix,\n  dbus,\n  mount,\n  remount,\n  umount,\n  pivot_root,\n  mqueue,\n  io_uring,\n}\n"

// profiles: where AppArmor keeps user namespaces from minhost no box is strict, and with the profile that
// finalize-install would write one is. Both are loaded from outside /etc, and gone afterwards.
func profiles() {
	if _, err := os.Stat("/etc/apparmor.d/abi/4.0"); err != nil {
		note("AppArmor: %v: nothing here restricts user namespaces", err)
		return
	}
	parser := func(flag, file string) bool {
		return check("apparmor_parser "+flag+" "+file, run("", "apparmor_parser", flag, file).good())
	}
	strict := func() result {
		return run(runner, installed, "run", "--strict", "--egress", "deny", "--", "/bin/echo", "ran")
	}
	const file = "/run/lab-confining"
	check("a confining profile", os.WriteFile(file, []byte(confining), 0o600))
	defer os.Remove(file)
	if !parser("--replace", file) {
		return
	}
	r := strict()
	if r.status != 125 || !strings.Contains(r.err, "permitted") && !strings.Contains(r.err, "denied") {
		check("AppArmor without userns: no strict box", fmt.Errorf("want 125: %w, %s", r.good(), r.err))
	} else {
		check("AppArmor without userns: no strict box", nil)
	}
	if !parser("--remove", file) || !parser("--replace", share+"/apparmor") {
		return
	}
	loaded, err := os.ReadFile("/sys/kernel/security/apparmor/profiles")
	if err == nil && !strings.Contains(string(loaded), "minhost (unconfined)\n") {
		err = errors.New(string(loaded))
	}
	check("the profile of finalize-install is loaded", err)
	r = strict()
	if err := r.good(); err == nil && r.out != "ran\n" {
		check("with it boxes are strict", fmt.Errorf("%q", r.out))
	} else {
		check("with it boxes are strict", err)
	}
	parser("--remove", share+"/apparmor")
}
