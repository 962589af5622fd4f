//go:build linux && fakedarwin

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/darwin/loopback"
	"github.com/gominimal/minhost/darwin/procs"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/verify/fakedarwin"
)

// newPlatform is a Mac whose kernel is the model of verify/fakedarwin: the steps, the helper and the
// answerer are those of a Mac, the programs that they call (ifconfig, launchctl, scutil) are the model's.
// No release is built with this tag; TestRelease looks.
func newPlatform() platform {
	return macPlatform(macEdges{
		Interfaces: func(gate host.Gate) loopback.Interfaces {
			ifconfig := loopback.Ifconfig{Run: host.Exec{Gate: gate}}
			return loopback.Fallback{First: loopback.Ifconfig{Run: fakeKernel{gate}}, Second: ifconfig}
		},
		Activate: fakeActivate,
		CredOf:   fakeCredOf,
		PIDOf:    fakePIDOf,
	})
}

// fakeKernel stands in for the ioctl: the model's lo0 without a process for every address.
type fakeKernel struct{ gate host.Gate }

// Run implements host.Runner for ifconfig.
func (k fakeKernel) Run(_ context.Context, c host.Command) (host.Result, error) {
	if !c.Reads {
		if err := k.gate.Pass("ioctl " + c.String()); err != nil {
			return host.Result{}, err
		}
	}
	a, err := fakedarwin.Ask(fakedarwin.Call{Name: "ifconfig", Args: c.Args})
	if err == nil && a.Code != 0 {
		err = fmt.Errorf("ioctl: %s", a.Stderr)
	}
	return host.Result{Stdout: []byte(a.Stdout), Stderr: []byte(a.Stderr)}, err
}

// fakeActivate reads FAKE_LAUNCHD_SOCKETS, "dns-udp=3 dns-tcp=4", of the model's launchd.
func fakeActivate(names ...string) ([]*os.File, error) {
	var files []*os.File
	for _, word := range strings.Fields(os.Getenv("FAKE_LAUNCHD_SOCKETS")) {
		name, number, _ := strings.Cut(word, "=")
		fd, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("socket %q of the model's launchd: %w", word, err)
		}
		for _, want := range names {
			if want == name {
				files = append(files, os.NewFile(uintptr(fd), name))
			}
		}
	}
	return files, nil
}

// fakeCredOf is the word of the kernel that the model runs on.
func fakeCredOf(fd int) (procs.Cred, error) {
	u, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return procs.Cred{}, err
	}
	return procs.Cred{UID: u.Uid, PID: int(u.Pid)}, nil
}

// fakePIDOf: the runner of the model is a Linux program and sends pidfds.
func fakePIDOf(f *os.File) (int, error) {
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", f.Fd()))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(info), "\nPid:")
	return strconv.Atoi(strings.Fields(rest + " 0")[0])
}
