package systemd

import (
	"fmt"
	"os"
	"strings"
)

// Kind is the service manager that minhost uses on this host.
type Kind string

const (
	// Systemd is running as PID 1.
	Systemd Kind = "systemd"
	// OpenRC runs the services, whatever PID 1 is. minhost supervises itself there.
	OpenRC Kind = "openrc"
	// SysVinit: PID 1 is sysvinit and runs the scripts of /etc/init.d. minhost supervises itself there.
	SysVinit Kind = "sysvinit"
	// Standalone: nothing that minhost knows. It supervises itself.
	Standalone Kind = "standalone"
)

// Manager is the verdict of Detect.
type Manager struct {
	Kind Kind
	// Reason is one line: the fact that decided.
	Reason string
	// Generated is one line when files in /etc belong to a generator and must not be written
	// (NixOS); empty otherwise.
	Generated string
	OS        OSRelease
}

// Env is how Detect sees the host.
type Env struct {
	Exists   func(path string) bool
	ReadFile func(path string) ([]byte, error)
}

// HostEnv reads the real host.
func HostEnv() Env {
	return Env{
		Exists: func(p string) bool {
			_, err := os.Lstat(p)
			return err == nil
		},
		ReadFile: os.ReadFile,
	}
}

// Detect decides by what runs, not by what is installed: a container of a Debian image has
// systemctl and no systemd. /run/systemd/system is what sd_booted(3) looks at.
func Detect(env Env) Manager {
	m := Manager{OS: osRelease(env)}
	switch init := pid1(env); {
	case env.Exists("/run/systemd/system"):
		m.Kind, m.Reason = Systemd, "/run/systemd/system exists"
	case env.Exists("/run/openrc"):
		m.Kind, m.Reason = OpenRC, fmt.Sprintf("/run/openrc exists and PID 1 is %s", init)
	case init == "init" && env.Exists("/etc/inittab") && env.Exists("/etc/init.d/rc"):
		m.Kind, m.Reason = SysVinit, "PID 1 is init, with /etc/inittab and /etc/init.d/rc"
	default:
		m.Kind, m.Reason = Standalone, fmt.Sprintf("PID 1 is %s, not systemd", init)
	}
	if env.Exists("/etc/NIXOS") || m.OS.ID == "nixos" {
		m.Generated = "NixOS generates /etc: units written there would fight its configuration"
	}
	return m
}

// osRelease reads the first of the two files that os-release(5) names.
func osRelease(env Env) OSRelease {
	for _, p := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		if b, err := env.ReadFile(p); err == nil {
			return ParseOSRelease(string(b))
		}
	}
	return OSRelease{}
}

// pid1 is the name of PID 1, printable ASCII only: a container may call it anything.
func pid1(env Env) string {
	b, err := env.ReadFile("/proc/1/comm")
	name := strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return -1
		}
		return r
	}, string(b))
	if err != nil || name == "" {
		return "unknown"
	}
	return name
}
