package vmlab

import (
	"strings"
	"time"
)

// systemd tells whether that is the machine's init: roots of the kinds sysv and openrc have another.
func (m *Machine) systemd() bool {
	_, kind, _ := strings.Cut(m.Suite, "-")
	return kind != "sysv" && kind != "openrc"
}

// bootState says whether the boot is over, and what init says.
func (m *Machine) bootState() (state string, over bool) {
	if m.systemd() {
		state = strings.TrimSpace(m.Try("systemctl", "is-system-running").Stdout)
		return state, state == "running" || state == "degraded"
	}
	// "N 2", once the scripts of runlevel 2 are begun; they have ended when nobody runs them.
	state = strings.TrimSpace(m.Try("/sbin/runlevel").Stdout)
	over = state == "N 2" && m.Try("pgrep", "-x", "rc|openrc|startpar|runscript").Status == 1
	return state, over
}

// Reboot reboots the machine by its own init and waits for the end of the boot.
func (m *Machine) Reboot() {
	m.t.Helper()
	m.Shutdown("reboot")
	m.Boot()
}

// Shutdown asks init for "reboot" or "poweroff" and waits until every process has ended.
func (m *Machine) Shutdown(verb string) {
	m.t.Helper()
	if m.systemd() {
		m.Try("systemctl", "--no-block", verb)
	} else {
		m.Try("/sbin/telinit", map[string]string{"reboot": "6", "poweroff": "0"}[verb])
	}
	select {
	case <-m.ended:
	case <-time.After(60 * time.Second):
		m.t.Fatalf("machine does not %s within 60 s\n%s", verb, m.Console())
	}
	m.wipeGroup()
}
