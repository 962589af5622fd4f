package darwin

// Layout is where everything of minhost lives on a Mac (DESIGN.md section 2). Paths go by the real names
// of folders: /etc and /var are links to /private/etc and /private/var.
type Layout struct {
	Program   string // the root-owned copy that root executes
	State     string // root's, and everybody may look into it: the socket is below
	Operators string // one uid a line
	Journal   string
	Marker    string // what verify --before-reboot keeps
	Lock      string // held by apply and undo; the first file of the folder and the last
	Run       string // made by the helper; what is in it names its boot
	Socket    string // the helper's, 0666
	Zone      string // written by the helper, watched by the answerer
	Reports   string // unix datagrams of the answerer to the helper: counters, lookups
	Lookups   string // there while somebody watches lookups
	Leases    string // one file a lease
	Boxes     string // one note a box
	HelperPID string // lock file of the helper
	Logs      string // folder
	Config    string // the admin's; need not exist
}

// DefaultLayout returns the places of DESIGN.md section 2.
func DefaultLayout() Layout {
	const state = "/Library/Application Support/minhost"
	const run = state + "/run"
	return Layout{
		Program:   "/Library/PrivilegedHelperTools/dev.minimal.minhost",
		State:     state,
		Operators: state + "/operators",
		Journal:   state + "/journal.json",
		Marker:    state + "/reboot.json",
		Lock:      state + "/apply.lock",
		Run:       run,
		Socket:    run + "/helper.sock",
		Zone:      run + "/zone",
		Reports:   run + "/reports.sock",
		Lookups:   run + "/lookups",
		Leases:    run + "/leases",
		Boxes:     run + "/boxes",
		HelperPID: run + "/helper.lock",
		Logs:      "/private/var/log",
		Config:    "/private/etc/minhost/config.json",
	}
}
