package initscript

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"text/template"

	"github.com/gominimal/minhost/linux/systemd"
	"github.com/gominimal/minhost/packaging"
)

// Marker is the second line of each script. A script without it is not ours.
const Marker = "# minhost: written by finalize-install; removed by finalize-install --undo"

// name of the script. Not minhost: OpenRC 0.45 puts a service into the cgroup of its name at the root of the
// hierarchy, where the tree of the boxes is.
const name = "minhost-boot"

// Path is where both managers look.
const Path = "/etc/init.d/" + name

// started is where OpenRC notes that the script was run.
const started = "/run/openrc/started/" + name

// manager is how one of them is told of a script.
type manager struct {
	// linked is a pattern of the links that put the script into its runlevel.
	linked string
	// tellers are the programs that make them, with their arguments; the first that is installed counts.
	tellers []teller
}

type teller struct {
	program      string
	add, without []string // arguments that put it in, and take it out
}

var managers = map[systemd.Kind]manager{
	// Runlevel boot: what is in default is started with the network or after it.
	systemd.OpenRC: openRC("boot"),
	systemd.SysVinit: {"/etc/rcS.d/S??" + name, []teller{
		{"update-rc.d", []string{name, "defaults"}, []string{name, "remove"}},
	}},
}

func openRC(runlevel string) manager {
	return manager{"/etc/runlevels/" + runlevel + "/" + name, []teller{
		{"rc-update", []string{"add", name, runlevel}, []string{"delete", name, runlevel}},
	}}
}

// debianNetwork is there where the network is up before runlevel boot: Debian has all of its rcS in sysinit.
const debianNetwork = "/etc/runlevels/sysinit/networking"

// folder of the template of each.
var templates = map[systemd.Kind]string{systemd.OpenRC: "openrc/minhost-boot.tmpl", systemd.SysVinit: "sysv/minhost-boot.tmpl"}

// plainPath has no character that means something to a shell.
var plainPath = regexp.MustCompile(`^(/[A-Za-z0-9._+-]+)+$`)

// Script renders the script of that manager for the installed program.
func Script(kind systemd.Kind, program string) ([]byte, error) {
	file, ok := templates[kind]
	if !ok {
		return nil, fmt.Errorf("render init script: none for %s", kind)
	}
	if !plainPath.MatchString(program) || path.Clean(program) != program {
		return nil, fmt.Errorf("render init script: program %q: want an absolute path of letters, digits and ._+-", program)
	}
	text, err := fs.ReadFile(packaging.InitScripts(), file)
	if err != nil {
		return nil, fmt.Errorf("render init script: %w", err)
	}
	t, err := template.New(file).Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("render init script: %w", err)
	}
	var out bytes.Buffer
	err = t.Execute(&out, struct{ Program, Marker string }{program, Marker})
	return out.Bytes(), err
}
