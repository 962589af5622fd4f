package fakedarwin

// mistake is something that people do wrong on a Mac, as a change of this program's source.
type mistake struct {
	what     string
	file     string // from the root of the module
	old, new string // old is in it exactly once
	pkg      string
	test     string // that turns red
}

const (
	jobGo, ctlGo, stepGo = "darwin/launchd/job.go", "darwin/launchd/ctl.go", "darwin/launchd/step.go"
	launchdPkg           = "./darwin/launchd"
	resolverfilePkg      = "./darwin/resolverfile"
)

var mistakes = []mistake{
	{"LaunchOnlyOnce: the job is gone after its first exit, and every retry with it",
		jobGo, "	ThrottleInterval  int\n", "	ThrottleInterval  int\n	LaunchOnlyOnce    bool\n", launchdPkg, "TestKeys"},
	{"KeepAlive of a one-shot job without SuccessfulExit: it is started for ever",
		jobGo, `p.KeepAlive = map[string]bool{"SuccessfulExit": false}`, "p.KeepAlive = true", launchdPkg, "TestKeepAlive"},
	{"looking right after bootstrap, which returns before the job ran",
		stepGo, "	var last error\n	err := s.control.poll(ctx, worksWait", "	var last error\n	if true {\n		return s.spec.Works(ctx)\n	}\n	err := s.control.poll(ctx, worksWait", launchdPkg, "TestEvidence"},
	{"113 is an error of undo", ctlGo, "case code == codeNotFound || code == codeNoProcess:", "case code == codeNoProcess:", launchdPkg, "TestOut"},
	{"no enable of a disabled label", ctlGo, "if off, err := c.Disabled(ctx, label); off || err != nil {", "if off, err := c.Disabled(ctx, label); off && err != nil {",
		launchdPkg, "TestIn"},
	{"a label that begins like ours counts as ours", "darwin/launchd/status.go", "strings.Trim(strings.TrimSpace(name), `\"`) == label",
		"strings.HasPrefix(strings.Trim(strings.TrimSpace(name), `\"`), label)", launchdPkg, "TestParseDisabled"},
	{"bootstrap straight after bootout", ctlGo, "	if err := c.poll(ctx, goneWait, goneEvery, free); err != nil {", "	if _, err := free(ctx); err != nil {", launchdPkg, "TestIn"},
	{"ifconfig without a mask: /8", "darwin/loopback/ifconfig.go", `return i.change(ctx, "alias", a.Addr.String(), "netmask", mask)`,
		"_ = mask\n	return i.change(ctx, \"alias\", a.Addr.String())", "./darwin/loopback", "TestIfconfig"},
	{"a mask sockaddr of length 0: /8", "darwin/loopback/ioctl.go", "b[0], b[1] = sockaddrSize, afInet", "b[1] = afInet", "./darwin/loopback", "TestBytes"},
	{"a range that looks complete with /8 masks", "darwin/loopback/alias.go", "case m[0] != HostMask:", "case m[0] == 0:", "./darwin/loopback", "TestCompare"},
	{"counting aliases by the substring 127.0.64", "darwin/loopback/alias.go", "	masks := map[netip.Addr][]uint32{}\n",
		"	n := 0\n	for _, a := range have {\n		if t := a.Addr.String(); len(t) > 8 && t[:8] == \"127.0.64\" {\n			n++\n		}\n	}\n	if n >= 250 {\n		return Difference{}\n	}\n	masks := map[netip.Addr][]uint32{}\n",
		"./darwin/loopback", "TestCompare"},
	{"adding aliases that are there: routes are scrubbed, VPN clients wake up", "darwin/loopback/alias.go", "		case !ok:\n", "		case !ok || m[0] == HostMask:\n",
		"./darwin/loopback", "TestEnsure"},
	{"grep state = running: a one-shot job that did its work counts as dead", stepGo, "	if !status.Loaded {\n		return drifted(", "	if status.State != \"running\" {\n		return drifted(",
		launchdPkg, "TestStates"},
	{"removing aliases that are not ours", "darwin/rangestep.go", "		if !loopback.InRange(a.Addr) {\n", "		if a.Addr.String() == \"127.0.0.1\" {\n", "./darwin", "TestRangeUndo"},
	{"removing aliases of the range that were there before", "darwin/rangestep.go", "		case !there:\n", "		case !there || mask == a.Mask:\n", "./darwin", "TestRangeUndo"},
	{"the mode of plists is left to the umask (000)", stepGo, "var plistAttr = host.Attr{Mode: 0o644}", "var plistAttr = host.Attr{Mode: 0o666}", launchdPkg, "TestModes"},
	{"verify is satisfied by a log line from before the reboot", "darwin/boot.go", `words["msg"] != "ready" || words["boot"] != boot`, `words["msg"] != "ready"`, "./darwin", "TestReadyAt"},
	{"a wildcard bind: no SockNodeName", jobGo, "SockNodeName: a.Addr().String(),", "SockNodeName: \"\",", launchdPkg, "TestSockets"},
	{"no SockType: there is no UDP socket", jobGo, "SockType: kind,", "SockType: kind[:0] + \"stream\",", launchdPkg, "TestSockets"},
	{"a process that has the pid of an ended box is killed for it", "darwin/procs/table.go", "return err == nil && i.Start == start, err", "_ = start\n	return err == nil && i.PID == pid, err",
		"./darwin/boxes", "TestReusedPID"},
	{"the runner's process group is killed with the box", "darwin/boxes/leaf.go", "	if n.Leader {\n", "	if n.PID > 0 {\n", "./darwin/boxes", "TestLifetime"},
	{"no retry inside: lo0 may be on its way up", "darwin/loopback/ensure.go", "	tries = 8\n", "	tries = 1\n", "./darwin/loopback", "TestEnsure"},
	{"no ThrottleInterval", jobGo, "ThrottleInterval: throttle,", "", launchdPkg, "TestKeepAlive"},
	{"37 is not tried again", ctlGo, "case code == codeIO || code == codeAlready || code == codeInProgress:", "case code == codeIO || code == codeInProgress:", launchdPkg, "TestIn"},
	{"5 is not tried again", ctlGo, "case code == codeIO || code == codeAlready || code == codeInProgress:", "case code == codeAlready || code == codeInProgress:", launchdPkg, "TestIn"},
	{"5 of a new release for a disabled label is taken for a busy one", ctlGo, "return false, c.enableIfOff(ctx, label)", "return false, nil", launchdPkg, "TestIn"},
	{"119 is an error though the label could be enabled", ctlGo, "		case code == codeDisabled: // somebody", "		case code == -codeDisabled: // somebody", launchdPkg, "TestIn"},
	{"36 of bootout is an error", ctlGo, "case 0, codeNoProcess, codeNotFound, codeInProgress, codeIO:", "case 0, codeNoProcess, codeNotFound, codeIO:", launchdPkg, "TestIn"},
	{"3 of bootout is an error", ctlGo, "case 0, codeNoProcess, codeNotFound, codeInProgress, codeIO:", "case 0, codeNotFound, codeInProgress, codeIO:", launchdPkg, "TestIn"},
	{"122 has no text of its own", ctlGo, `case code == codeBadFile || strings`, `case strings`, launchdPkg, "TestFailure"},
	{"enable for a label that nobody disabled: an entry that stays for ever", ctlGo, "off || err != nil {", "off || !off || err != nil {", launchdPkg, "TestIn"},
	{"probing a sample of the range", "darwin/loopback/alias.go", "	for _, a := range Wanted() {\n		if err := bind(a)", "	for _, a := range Wanted()[:16] {\n		if err := bind(a)", "./darwin/loopback", "TestUnbound"},
	{"overwriting a program in place: a Mac kills it for good", "installer/host/disk_write.go", "	if err := d.rename(temp, path); err != nil {",
		"	if rel, err := relative(path); err == nil {\n		if _, err := d.root.Lstat(rel); err == nil {\n			return errors.Join(d.root.WriteFile(rel, data, 0o644), d.Clean(path))\n		}\n	}\n	if err := d.rename(temp, path); err != nil {",
		"./installer/host", "TestWriteFileReplacesTheFileNotItsBytes"},
}

// asRoot are mistakes that a whole installation shows: the package makes its own namespaces.
var asRoot = []mistake{
	{"a second prompt for a password", "cmd/minhost/finalize.go", "	if err := env.elevate(ctx, script); err != nil {\n		return err\n	}\n	return env.finish(ctx)",
		"	if err := errors.Join(env.elevate(ctx, \"true\\n\"), env.elevate(ctx, script)); err != nil {\n		return err\n	}\n	return env.finish(ctx)", "./verify/e2e/mac", "TestInstall"},
	{"a prompt for a host on which nothing is to be done", "cmd/minhost/finalize.go", "if plan.Settled() && f.only == nil {", "if plan.Settled() && env.EUID == 0 && f.only == nil {", "./verify/e2e/mac", "TestInstall"},
	{"mDNSResponder is not told of new names", "cmd/minhost/names_mac.go", "if err := n.hangup(ctx); err != nil && ctx.Err() == nil {", "if err := ctx.Err(); err != nil {", "./verify/e2e/mac", "TestBox"},
	{"an address is given though some of the range are absent: a connection to them hangs", "cmd/minhost/ports_mac.go", "	if cause != nil {\n		return fmt.Errorf(\"%d of %d", "	if cause != nil && len(unbound) == loopback.Count {\n		return fmt.Errorf(\"%d of %d",
		"./verify/e2e/mac", "TestRangeUnavailable"},
	{"sockets of launchd told apart by their order", "cmd/minhost/answerer_mac.go", "			have[kind] = true\n", "			have[kind-kind+syscall.SOCK_DGRAM-len(have)] = true // which is 2, SOCK_STREAM 1\n", "./verify/e2e/mac", "TestRebootPortTaken"},
}
