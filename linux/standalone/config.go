package standalone

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"time"
)

// AnswererID is uid and gid of the answerer. It lies in the range 61184 to 65519 that systemd keeps
// for dynamic users, so no distribution gives it to anybody.
const AnswererID = 61353

// Names of the descriptors (LISTEN_FDNAMES), the same as in the systemd units.
const (
	HelperFDName   = "helper"
	AnswererFDName = "answerer"
)

// Config is what supervise, start and stop must agree on. Every path is absolute.
type Config struct {
	Program string // what is run, in all its roles
	Run     string // folder of socket and lock; made root-owned, 0755
	Socket  string // the helper's, 0666
	Lock    string // record lock of the supervisor, and its notes about its children
	Log     string // what supervisor, helper and answerer print; LOG.1 is the part before
	Holder  string // cgroup folder that the supervisor enters when it exists; "" for none

	Answerer []Listen
	UID, GID int // of the answerer

	// Arguments of the program for each role.
	SuperviseArgs, ExecArgs, HelperArgs, AnswererArgs []string
}

// Listen is one address of the answerer, bound for UDP and for TCP.
type Listen struct {
	Addr netip.AddrPort
	// Optional addresses may be missing on the host: ::1 where IPv6 is off.
	Optional bool
	// Marks has the kernel tell the answerer the mark of each packet: it names the box that asks.
	Marks bool
}

// DefaultConfig returns the values of DESIGN.md section 2 and 5.1.
func DefaultConfig(program, run, socket, lock, log string) Config {
	return Config{
		Program: program, Run: run, Socket: socket, Lock: lock, Log: log,
		Answerer: []Listen{
			{Addr: netip.MustParseAddrPort("127.0.0.1:15353")},
			{Addr: netip.MustParseAddrPort("127.0.0.1:15354"), Marks: true},
			{Addr: netip.MustParseAddrPort("[::1]:15354"), Optional: true, Marks: true},
		},
		UID: AnswererID, GID: AnswererID,
		SuperviseArgs: []string{"supervise"},
		ExecArgs:      []string{"exec-listen"},
		HelperArgs:    []string{"helper"},
		AnswererArgs:  []string{"resolverd"},
	}
}

func (c Config) check() error {
	for _, f := range []struct{ name, path string }{
		{"program", c.Program}, {"run folder", c.Run}, {"socket", c.Socket}, {"lock", c.Lock}, {"log", c.Log},
	} {
		if !filepath.IsAbs(f.path) {
			return fmt.Errorf("supervise: %s %q: want an absolute path", f.name, f.path)
		}
	}
	if c.Holder != "" && !filepath.IsAbs(c.Holder) {
		return fmt.Errorf("supervise: holder %q: want an absolute path", c.Holder)
	}
	if c.UID <= 0 || c.GID <= 0 {
		return fmt.Errorf("supervise: answerer as %d:%d: never root", c.UID, c.GID)
	}
	return nil
}

// notifyPath is where children report that they are ready.
func (c Config) notifyPath() string { return c.Run + "/notify" }

// env is the whole environment of every process that is started here: nothing of root's own.
func env() []string {
	return []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
}

// Waits. All are bounds for something that takes milliseconds.
const (
	readyWait = 15 * time.Second // from start until helper and answerer said READY=1
	termWait  = 5 * time.Second  // from SIGTERM to SIGKILL, per process
	gateWait  = 10 * time.Second // a started child waits that long for its first byte
)
