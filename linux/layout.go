// Package linux holds the steps that prepare a Linux host for boxes: program, operators, range,
// tree, table, belt, services, boot units and names, in that order.
//
// It only describes and changes the host. It keeps no lease and answers no caller (installer/helper
// does), and it never touches a rule, a link or a file that is not minhost's.
package linux

// Layout is where everything of minhost lives on a Linux host (DESIGN.md section 2). Tests use
// the same places, in a mount namespace of their own.
type Layout struct {
	Program   string // the root-owned copy that root executes
	Config    string // the admin's, who may not have made it; read by all
	State     string // journal and operators; root 0700, survives a reboot
	Operators string // one uid a line
	Journal   string
	Marker    string // what is expected after a reboot; root 0600
	Run       string // leases, zone, sockets, locks; tmpfs
	Socket    string // the helper's, 0666 in a root-owned folder
	Zone      string // written by the helper, watched by the answerer
	Reports   string // unix datagrams of the answerer to the helper: refused names, counters
	Lookups   string // there while somebody watches lookups
	Leases    string // one file a lease
	Lock      string // held by apply and undo
	HelperPID string // lock file of the helper
	SuperPID  string // lock file of the standalone supervisor
	Log       string // standalone only: what helper and answerer print
}

// DefaultLayout returns the places of DESIGN.md section 2.
func DefaultLayout() Layout {
	const state, run = "/var/lib/minhost", "/run/minhost"
	return Layout{
		Program:   "/usr/local/lib/minhost/minhost",
		Config:    "/etc/minhost/config.json",
		State:     state,
		Operators: state + "/operators",
		Journal:   state + "/journal.json",
		Marker:    state + "/reboot.json",
		Run:       run,
		Socket:    run + "/helper.sock",
		Zone:      run + "/zone",
		Reports:   run + "/reports.sock",
		Lookups:   run + "/lookups",
		Leases:    run + "/leases",
		Lock:      run + "/apply.lock",
		HelperPID: run + "/helper.lock",
		SuperPID:  run + "/supervise.lock",
		Log:       run + "/log",
	}
}
