package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The machine's one real network device, and who is at the other end of it: nobody but the recorder of
// every frame. Each sender has a destination of its own, so that a frame that has its octets is its.
const (
	wireName              = "wire0"
	wireNear, wireNear6   = "203.0.113.2/24", "2001:db8:71::2/64"
	hostAim, hostAim6     = "203.0.113.8", "2001:db8:71:0:5048:4f53:5448:8" // what the host sends to from power-on
	deniedAim, deniedAim6 = "203.0.113.9", "2001:db8:71:0:5048:4f53:5448:9" // a box that may reach nothing
	openAim, openAim6     = "203.0.113.10", "2001:db8:71:0:5048:4f53:5448:a"
)

// wire has the network up before the distribution's init starts, and a process of the host that sends from
// then on: so that there never was a time in which a box could not have been heard.
func wire() error {
	for _, m := range []struct{ source, target string }{{"proc", "/proc"}, {"sysfs", "/sys"}} {
		if err := unix.Mount(m.source, m.target, m.source, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	lines := []string{
		"modprobe virtio_net",
		"ip link set eth0 name " + wireName,
		// The recorder's own network announces itself; nothing of it is wanted.
		"echo 0 >/proc/sys/net/ipv6/conf/" + wireName + "/accept_ra",
		"ip link set " + wireName + " up addrgenmode none",
		"ip address add " + wireNear + " dev " + wireName,
		"ip address add " + wireNear6 + " dev " + wireName + " nodad",
	}
	// Everybody's link address is known, so that each packet is a frame at once.
	for _, aim := range []string{hostAim, hostAim6, deniedAim, deniedAim6, openAim, openAim6} {
		lines = append(lines, "ip neighbour add "+aim+" lladdr 52:54:00:00:00:01 nud permanent dev "+wireName)
	}
	for _, line := range lines {
		if err := run("", "/bin/sh", "-ec", line).good(); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	// From the initial ram disk that this program still is: the second disk is not mounted.
	if err := exec.Command("/proc/self/exe", "storm", hostAim, hostAim6).Start(); err != nil {
		return err
	}
	for _, target := range []string{"/proc", "/sys"} { // init makes its own
		if err := unix.Unmount(target, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", target, err)
		}
	}
	return nil
}

// stormPause is the time between two tries: two processes and an emulated processor share it.
const stormPause = 250 * time.Millisecond

// storm tries to reach each host for ever: datagrams, a connection, and an echo request where the kernel
// allows it. After each round it prints the time since the kernel's start and the rounds so far.
func storm(hosts []string) {
	for n := 1; ; n++ {
		for _, h := range hosts {
			if c, err := net.Dial("udp", net.JoinHostPort(h, "9")); err == nil {
				_, _ = c.Write([]byte("storm")) // refused or lost: the recorder tells
				_ = c.Close()
			}
			if c, err := net.DialTimeout("tcp", net.JoinHostPort(h, "9"), 20*time.Millisecond); err == nil {
				_ = c.Close()
			}
			echo(net.ParseIP(h))
		}
		fmt.Fprintln(os.Stdout, uptime(), n)
		time.Sleep(stormPause)
	}
}

// echo sends one echo request through a ping socket.
func echo(to net.IP) {
	family, proto, request, sa := unix.AF_INET6, unix.IPPROTO_ICMPV6, byte(128), unix.Sockaddr(nil)
	if four := to.To4(); four != nil {
		family, proto, request = unix.AF_INET, unix.IPPROTO_ICMP, 8
		sa = &unix.SockaddrInet4{Addr: [4]byte(four)}
	} else {
		sa = &unix.SockaddrInet6{Addr: [16]byte(to)}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	_ = unix.Sendto(fd, []byte{request, 0, 0, 0, 0, 0, 0, 1}, unix.MSG_DONTWAIT, sa) // as above
}

// early has two boxes started by units as early as there can be any: one may reach nothing, one everything.
var early = []struct{ name, egress, aims string }{
	{"early-denied", "deny", deniedAim + " " + deniedAim6},
	{"early-open", "open", openAim + " " + openAim6},
}

// earlyProgram is on the first disk: the second is mounted much later.
const earlyProgram = "/var/tmp/lab-guest"

func earlyUnit(name string) string { return "/etc/systemd/system/lab-" + name + ".service" }
func earlyLog(name string) string  { return "/run/lab-" + name + ".log" }

// plantEarly writes and enables the units; they start with the next boot.
func plantEarly() error {
	if err := run("", "cp", share+"/guest", earlyProgram).good(); err != nil {
		return err
	}
	for _, e := range early {
		unit := "[Unit]\nDefaultDependencies=no\nAfter=local-fs.target minhost-helper.socket\n" +
			// No HOME: what an account keeps in its own is no installation's.
			"[Service]\nUser=" + runner + "\nUnsetEnvironment=HOME\nStandardOutput=truncate:" + earlyLog(e.name) + "\nRestart=on-failure\nRestartSec=200ms\n" +
			"ExecStart=" + installed + " run --name " + e.name + " --egress " + e.egress + " -- " + earlyProgram + " storm " + e.aims +
			"\n[Install]\nWantedBy=sysinit.target\n"
		if err := os.WriteFile(earlyUnit(e.name), []byte(unit), 0o644); err != nil {
			return err
		}
		if err := run("", "systemctl", "enable", "lab-"+e.name).good(); err != nil {
			return err
		}
	}
	return nil
}

// earlyRan says from when to when the two boxes tried, and ends them.
func earlyRan() {
	for _, e := range early {
		b, err := os.ReadFile(earlyLog(e.name))
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		if err == nil && len(lines) < 20 {
			err = fmt.Errorf("only %d rounds: %q", len(lines), lines)
		}
		check("box "+e.name+" has tried since this boot began", err)
		note("box %s: first round after %s, last after %s", e.name, lines[0], lines[len(lines)-1])
		r := run("", "systemctl", "disable", "--now", "lab-"+e.name)
		check("box "+e.name+" ends", r.good())
		for _, f := range []string{earlyUnit(e.name), earlyLog(e.name)} {
			if err := os.Remove(f); err != nil {
				check("remove "+f, err)
			}
		}
	}
	// A run that a signal ended is a failed unit, and stays in the list without its file.
	check("their units are forgotten", run("", "systemctl", "daemon-reload").good())
	_ = run("", "systemctl", "reset-failed", "lab-early*") // none is there where both ended well
}
