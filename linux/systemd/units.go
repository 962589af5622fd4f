package systemd

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/netip"
	"path"
	"regexp"
	"strings"
	"text/template"

	"github.com/gominimal/minhost/packaging"
)

// Marker is the first line of every unit. A unit without it is not ours.
const Marker = "# minhost: written by finalize-install; removed by finalize-install --undo"

// sumPrefix starts the second line: the sha256 (hex) of everything after it. So undo tells a unit
// that some version of minhost wrote from one that somebody edited, without asking the journal.
const sumPrefix = "# sha256 of the lines below: "

// Names of the units. The tree is first: it starts before and stops after all others.
const (
	TreeService     = "minhost-tree.service"
	HelperSocket    = "minhost-helper.socket"
	HelperService   = "minhost-helper.service"
	TableSocket     = "minhost-table.socket"
	AnswererSocket  = "minhost-resolverd.socket"
	AnswererService = "minhost-resolverd.service"
	NamesService    = "minhost-names.service"
	VerifyService   = "minhost-verify.service"
)

// admins are units that minhost writes, and that an admin may enable.
var admins = [...]string{VerifyService}

// order is the order in which units are written and started.
var order = [...]string{TreeService, AnswererSocket, AnswererService, TableSocket, HelperSocket, HelperService, NamesService, VerifyService}

// Params is what differs between hosts. Every path is absolute.
type Params struct {
	Program  string           // the installed program
	Socket   string           // the helper's unix socket
	Answerer []netip.AddrPort // each is bound for UDP and TCP; a wildcard is an error
	Zone     string           // for descriptions only
	Link     string           // for descriptions only
	Dir      string           // folder of the units
}

// DefaultParams returns the values of DESIGN.md section 2 for this program and socket.
func DefaultParams(program, socket string) Params {
	return Params{
		Program: program,
		Socket:  socket,
		Answerer: []netip.AddrPort{
			netip.MustParseAddrPort("127.0.0.1:15353"),
			netip.MustParseAddrPort("127.0.0.1:15354"),
			netip.MustParseAddrPort("[::1]:15354"),
		},
		Zone: "min.internal",
		Link: "min0",
		Dir:  "/etc/systemd/system",
	}
}

// Unit is one unit file as it will be written.
type Unit struct {
	Name    string
	Path    string
	Content []byte
}

// plainPath has no character that means something to systemd (space, quotes, % and $).
var plainPath = regexp.MustCompile(`^(/[A-Za-z0-9._+-]+)+$`)

func (p Params) check() error {
	for _, f := range []struct{ name, path string }{{"program", p.Program}, {"socket", p.Socket}, {"folder", p.Dir}} {
		if !plainPath.MatchString(f.path) || path.Clean(f.path) != f.path {
			return fmt.Errorf("render units: %s %q: want an absolute path of letters, digits and ._+-", f.name, f.path)
		}
	}
	for _, a := range p.Answerer {
		if !a.Addr().IsLoopback() || a.Port() == 0 {
			return fmt.Errorf("render units: answerer %s: want a loopback address with a port", a)
		}
	}
	return nil
}

// Units renders all units, in the order in which they are written and started.
func Units(p Params) ([]Unit, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	var units []Unit
	for _, name := range order {
		text, err := fs.ReadFile(packaging.Systemd(), name)
		if err != nil {
			return nil, fmt.Errorf("render %s: %w", name, err)
		}
		t, err := template.New(name).Option("missingkey=error").Parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("render %s: %w", name, err)
		}
		var out bytes.Buffer
		if err := t.Execute(&out, struct {
			Params
			Marker string
		}{p, Marker}); err != nil {
			return nil, fmt.Errorf("render %s: %w", name, err)
		}
		units = append(units, Unit{Name: name, Path: path.Join(p.Dir, name), Content: sum(out.Bytes())})
	}
	return units, nil
}

// sum puts the sha256 of the lines below the marker between them and the marker.
func sum(rendered []byte) []byte {
	marker, body, _ := strings.Cut(string(rendered), "\n")
	return []byte(marker + "\n" + sumPrefix + hexSum(body) + "\n" + body)
}

func hexSum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

// Origin says who wrote a unit file.
type Origin int

const (
	// Stranger: our marker is not its first line.
	Stranger Origin = iota
	// Ours: some version of minhost wrote exactly these bytes.
	Ours
	// Edited: minhost wrote it and somebody changed it since.
	Edited
)

// OriginOf reads marker and sum of a unit file.
func OriginOf(content []byte) Origin {
	marker, rest, _ := strings.Cut(string(content), "\n")
	if marker != Marker {
		return Stranger
	}
	line, body, _ := strings.Cut(rest, "\n")
	if line == sumPrefix+hexSum(body) {
		return Ours
	}
	return Edited
}
