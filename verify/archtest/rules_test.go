package archtest

// rule says which packages of this module the packages of a pattern may import. The pattern
// "linux/..." means linux and all below it; the first rule that matches a package counts.
type rule struct {
	from   string
	may    []string
	reason string
}

// internal are the arrows of the design, most specific first.
var internal = []rule{
	{"cmd/minhost", []string{"..."}, "cmd wires everything"},

	{"installer", []string{"installer/host"}, "the engine knows no system and no step"},
	{"installer/host", nil, "the edges decide nothing"},
	{"installer/host/...", []string{"installer", "installer/host/..."}, "steps that both systems share, and the loop that cuts them"},
	{"installer/lease", nil, "the pure half stands alone, so that it can be tested without a host"},
	{"installer/api", nil, "the wire types are what a runner in another repository would import"},
	{"installer/api/internal/gen", []string{"installer/api"}, "the generator of the wire types"},
	{"installer/client/...", []string{"installer/api", "installer/client/..."}, "a runner imports the client: it must not drag the host in"},
	{"installer/helper/...",
		[]string{"installer/lease", "installer/api", "installer/host", "resolverd/zonefile", "installer/helper/..."},
		"the server reaches the system through ports of its own, so that it can be tested on fakes"},

	{"darwin/...", []string{"installer", "installer/host/...", "packaging/...", "darwin/..."},
		"steps know the engine, never who calls the helper"},
	{"installer/operators", []string{"installer", "installer/host"}, "a list in a file, and the step that makes it"},
	{"linux/standalone", []string{"installer", "installer/host/...", "linux/...", "resolverd/portholder"},
		"it binds the answerer's ports in its stead, and says who has them"},
	{"linux/hook/hooktest", []string{"linux/hook", "verify/golden"}, "tests that two sets of programs share"},
	{"linux/...", []string{"installer", "installer/host/...", "installer/lease", "installer/operators", "packaging/...", "linux/..."},
		"steps and kernel edges know the engine and the verdicts, never who calls the helper"},
	{"packaging/...", []string{"packaging/..."}, "embedded files"},

	{"resolverd/...", []string{"resolverd/..."}, "the answerer knows no leases and no root"},

	{"verify", []string{"darwin/...", "linux/...", "installer", "installer/client", "installer/api", "resolverd/probe"},
		"verify reads the host the way its users do"},
	{"verify/reboot", []string{"verify", "installer"}, "it compares reports, and what plans write"},
	{"verify/benchdns", []string{"resolverd/..."}, "the answerer beside other name servers"},
	{"verify/dnsconf", []string{"resolverd", "resolverd/zonefile"}, "the answerer beside other name servers"},
	{"verify/netlab", []string{"linux/..."}, "the lab puts processes into leaves and namespaces"},
	{"verify/fakedarwin/program", []string{"verify/fakedarwin"}, "every program of the model asks the model"},
	{"verify/e2e/rig", []string{"verify/netlab", "installer/host/hosttest"},
		"the rig knows the program by its command line, and compares snapshots of the host"},
	{"verify/...", []string{"verify/..."}, "test helpers; their tests may import what they test"},
}

// module says in which packages a third-party module may be imported outside tests. An empty list:
// in tests only.
type module struct {
	path   string
	in     []string
	reason string
}

var modules = []module{
	{"github.com/spf13/cobra", []string{"cmd/minhost"}, "flags and verbs are the program's own"},
	{"github.com/spf13/pflag", []string{"cmd/minhost"}, "flag types of cobra"},
	{"github.com/kardianos/service", []string{"cmd/minhost"},
		"the run loop only: its macOS install still uses launchctl load, and importing it runs detection"},
	{"howett.net/plist", []string{"darwin/...", "verify/fakedarwin"}, "launchd jobs"},
	{"github.com/miekg/dns", []string{"resolverd/...", "verify/benchdns", "verify/dnsconf", "verify/vmlab", "verify/vmlab/vm/guest", "verify/fakedarwin"}, "DNS messages"},
	{"github.com/fsnotify/fsnotify", []string{"resolverd/..."}, "the zone file is watched"},
	{"golang.org/x/net", []string{"resolverd/...", "linux/strict"},
		"batched UDP reads and writes; the assembler of the filter of system calls (bpf): the seccomp packages for Go compare all 64 bits of an argument or let a foreign architecture pass"},
	{"github.com/vishvananda/netlink", []string{"linux/...", "verify/fakedarwin"}, "links, sockets and conntrack of Linux"},
	{"github.com/google/nftables", []string{"linux/nft"}, "the one table; does not compile on darwin"},
	{"github.com/mdlayher/netlink", []string{"linux/nft", "linux/lasting", "linux/sockdiag", "linux/cut"}, "the lasting connections under google/nftables, NFLOG, sockets and conntrack"},
	{"github.com/cilium/ebpf", []string{"linux/belt", "linux/localhost", "linux/hook", "linux/hook/hooktest"}, "cgroup programs, assembled in Go; hook is how the other two attach theirs"},
	{"github.com/godbus/dbus/v5", []string{"linux/..."}, "systemd-resolved and systemd"},
	{"github.com/coreos/go-systemd/v22", []string{"linux/...", "resolverd/...", "cmd/minhost"},
		"sockets handed over, readiness"},
	{"github.com/varlink/go", []string{"installer/api/...", "installer/client/...", "installer/helper"}, "the helper's wire"},
	{"github.com/google/renameio/v2", []string{"installer/host"}, "atomic replacement of files"},
	{"golang.org/x/sys", []string{"linux/...", "darwin/...", "resolverd/datagram", "resolverd/report", "resolverd/portholder", "installer/host/...", "installer/helper", "installer/client/...", "verify/...", "cmd/minhost"},
		"system calls, in files for one system"},

	{"github.com/vishvananda/netns", nil, "namespaces in tests"},
	{"github.com/google/go-cmp", []string{"verify/golden"}, "differences in tests"},
	{"pgregory.net/rapid", nil, "generated histories in tests"},
	{"github.com/rogpeppe/go-internal", nil, "scripts in tests"},
	{"go.uber.org/goleak", nil, "leaks in tests"},
}

// oneFileExceptions are files that break a source rule for a reason.
var oneFileExceptions = map[string]string{
	"verify/vmlab/vm/guest/life_linux.go: shell": "test helper: a script of the lab",
	"verify/vmlab/vm/guest/use_linux.go: shell":  "test helper: what people type in a box",
	"verify/vmlab/exec_linux.go: shell":          "test helper: lines that break a machine are written as an admin would type them",
	"verify/netlab/main_linux.go: shell":         "test helper: a process must enter its cgroup before it unshares, which a shell does without a second binary",
}
