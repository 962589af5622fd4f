package resolved

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/gominimal/minhost/linux/systemd"
)

// libraries are the folders in which distributions keep libnss_resolve.so.2.
var libraries = [...]string{
	"/lib/*/libnss_resolve.so.2", "/usr/lib/*/libnss_resolve.so.2",
	"/lib64/libnss_resolve.so.2", "/usr/lib64/libnss_resolve.so.2",
	"/lib/libnss_resolve.so.2", "/usr/lib/libnss_resolve.so.2",
}

// HostFacts reads the host, all but Running. Files that are not there are empty: every resolver
// takes that for its default.
func HostFacts(env systemd.Env) (Facts, error) {
	var f Facts
	for _, r := range []struct {
		path string
		into *string
	}{{"/etc/resolv.conf", &f.ResolvConf}, {"/etc/nsswitch.conf", &f.NSSwitch}} {
		b, err := env.ReadFile(r.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return f, fmt.Errorf("read %s: %w", r.path, err)
		}
		*r.into = string(b)
	}
	for _, pattern := range libraries {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			f.NSSResolve = true
		}
	}
	f.Installed = env.Exists("/usr/lib/systemd/systemd-resolved") || env.Exists("/lib/systemd/systemd-resolved")
	f.Processes = dnsProcesses(env)
	f.Configs = configsOf(env, f.Processes)
	release, _ := env.ReadFile("/proc/sys/kernel/osrelease")
	f.WSL = strings.Contains(strings.ToLower(string(release)), "microsoft")
	f.NixOS = systemd.Detect(env).Generated != ""
	return f, nil
}
