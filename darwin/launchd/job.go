package launchd

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"strconv"
	"strings"

	"howett.net/plist"
)

// Dir is where launchd looks for daemons at boot.
const Dir = "/Library/LaunchDaemons"

// Job is a daemon as its plist says it (launchd.plist(5)).
type Job struct {
	Label   string
	Program []string // absolute path, then arguments
	// SHA256 of the program that the job was started with, in hex. launchd ignores it; a plist that
	// differs in nothing else asks for a restart of the job, which keeps its sockets.
	SHA256 string
	// User runs it; "" is root.
	User string
	// OneShot jobs are started again only when they end with another status than 0; others always.
	OneShot bool
	// Listen are addresses that launchd binds, each for UDP and TCP, under the name SocketName.
	Listen []netip.AddrPort
	Log    string // what it prints; absolute
}

// SocketName is what Activate asks launchd for.
const SocketName = "dns"

// digestVariable carries Job.SHA256.
const digestVariable = "MINHOST_PROGRAM_SHA256"

// throttle is the least time in seconds between two starts of a job.
const throttle = 10

// job is the plist. Keys are those of launchd.plist(5) and no others; there is no LaunchOnlyOnce, which
// would drop the job after its first exit and with it every retry.
type job struct {
	Label             string
	ProgramArguments  []string
	Env               map[string]string `plist:"EnvironmentVariables"`
	UserName          string            `plist:",omitempty"`
	RunAtLoad         bool
	KeepAlive         any
	ThrottleInterval  int
	ProcessType       string
	StandardOutPath   string
	StandardErrorPath string
	Sockets           map[string][]socket `plist:",omitempty"`
}

// socket says everything: without SockNodeName the port is bound on every interface, without SockType
// it is a stream and a UDP socket never appears.
type socket struct {
	SockType        string
	SockProtocol    string
	SockFamily      string
	SockNodeName    string
	SockServiceName string
	SockPassive     bool
}

// Path is the file of the job.
func (j Job) Path() string { return path.Join(Dir, j.Label+".plist") }

// Marker is in the first lines of every plist that minhost writes. It has no "--": a comment of XML must not.
const Marker = "minhost: written and removed by finalize-install"

// Render gives the bytes of the plist.
func Render(j Job) ([]byte, error) {
	if err := j.check(); err != nil {
		return nil, fmt.Errorf("job %s: %w", j.Label, err)
	}
	p := job{
		Label: j.Label, ProgramArguments: j.Program, Env: map[string]string{digestVariable: j.SHA256}, UserName: j.User,
		RunAtLoad: true, KeepAlive: true, ThrottleInterval: throttle, ProcessType: "Interactive",
		StandardOutPath: j.Log, StandardErrorPath: j.Log,
	}
	if j.OneShot {
		p.KeepAlive = map[string]bool{"SuccessfulExit": false}
	}
	for _, a := range j.Listen {
		if p.Sockets == nil {
			p.Sockets = map[string][]socket{}
		}
		for kind, protocol := range map[string]string{"dgram": "UDP", "stream": "TCP"} {
			p.Sockets[SocketName+"-"+strings.ToLower(protocol)] = []socket{{
				SockType: kind, SockProtocol: protocol, SockFamily: "IPv4", SockNodeName: a.Addr().String(),
				SockServiceName: strconv.Itoa(int(a.Port())), SockPassive: true,
			}}
		}
	}
	b, err := plist.MarshalIndent(p, plist.XMLFormat, "\t")
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", j.Label, err)
	}
	return mark(b)
}

// mark puts the marker behind the document type: nothing may stand before "<?xml".
func mark(b []byte) ([]byte, error) {
	at := bytes.Index(b, []byte("<plist"))
	if at < 0 {
		return nil, errors.New("no <plist> in what was rendered")
	}
	out := bytes.Join([][]byte{b[:at], []byte("<!-- " + Marker + " -->\n"), b[at:]}, nil)
	return append(bytes.TrimRight(out, "\n"), '\n'), nil
}

func (j Job) check() error {
	switch {
	case j.Label == "" || strings.ContainsAny(j.Label, "/ \t\n"):
		return errors.New("the label is not one word")
	case len(j.Program) == 0 || !path.IsAbs(j.Program[0]) || path.Clean(j.Program[0]) != j.Program[0]:
		return errors.New("the program is not an absolute path")
	case !path.IsAbs(j.Log):
		return errors.New("the log is not an absolute path")
	case len(j.Listen) > 1:
		return errors.New("more than one address to listen on")
	}
	if b, err := hex.DecodeString(j.SHA256); err != nil || len(b) != sha256.Size {
		return errors.New("the digest of the program is not 64 hex digits")
	}
	for _, a := range j.Listen {
		if !a.Addr().Is4() || !a.Addr().IsLoopback() || a.Port() == 0 {
			return fmt.Errorf("listen %s: want an IPv4 loopback address with a port", a)
		}
	}
	return nil
}

// SocketNames are the names under which a job that listens gets its sockets.
func SocketNames() []string { return []string{SocketName + "-udp", SocketName + "-tcp"} }

// sameButProgram tells whether two plists of minhost differ in the digest of the program only: then the
// job is started again and stays loaded.
func sameButProgram(a, b []byte) bool {
	strip := func(text []byte) (job, bool) {
		var p job
		_, err := plist.Unmarshal(text, &p)
		_, has := p.Env[digestVariable]
		delete(p.Env, digestVariable)
		return p, err == nil && has
	}
	x, okX := strip(a)
	y, okY := strip(b)
	if !okX || !okY {
		return false
	}
	first, err1 := plist.Marshal(x, plist.XMLFormat)
	second, err2 := plist.Marshal(y, plist.XMLFormat)
	return err1 == nil && err2 == nil && bytes.Equal(first, second)
}
