package resolverfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"path"
	"strings"
)

// Dir is the folder by its real name: /etc is a link to /private/etc on every Mac, and a path with a link
// in it is one that somebody could turn.
const Dir = "/private/etc/resolver"

// Temp says where temporary files of a folder live: those of Dir on the same file system, and not in it.
func Temp(dir string) string {
	if dir == Dir {
		return path.Dir(Dir)
	}
	return dir
}

// Marker is the first line of the file. A file without it is not ours.
const Marker = "# minhost: written by finalize-install; removed by finalize-install --undo"

// sumPrefix begins the second line: the sha256 of all that follows it. So a file that somebody edited is
// told from one that an older minhost wrote.
const sumPrefix = "# sha256 of the lines below: "

// Zone is what is sent where.
type Zone struct {
	Name   string // "min.internal", no dot at the end
	Server netip.AddrPort
}

// Path is the file of the zone.
func (z Zone) Path() string { return path.Join(Dir, z.Name) }

// Render gives the bytes of the file.
//
// The line "flags a aaaa" is in no manual, but in the parser of every macOS from 10.7 to 26, which skips
// words that it does not know. With it a Mac without a network still asks for A records: without it
// AI_ADDRCONFIG, which browsers set, leaves boxes without names on a train, where their addresses work as
// ever. It costs an AAAA question, which the answerer answers at once.
func Render(z Zone) []byte {
	body := fmt.Sprintf("nameserver %s\nport %d\nflags a aaaa\n", z.Server.Addr(), z.Server.Port())
	return []byte(Marker + "\n" + sumPrefix + sum(body) + "\n" + body)
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

// Ours says whether some version of minhost wrote exactly these bytes. One that somebody edited is not
// ours any more, though it has the marker.
func Ours(content []byte) bool {
	marker, rest, _ := strings.Cut(string(content), "\n")
	line, body, _ := strings.Cut(rest, "\n")
	return marker == Marker && line == sumPrefix+sum(body)
}

// Faults says, a line each, why macOS would not do with these bytes what the zone wants.
func Faults(content []byte, z Zone) []string {
	var found []string
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if bytes.Contains(content, []byte("\r")) {
		say("lines end in CR LF: the last word of each is another one")
	}
	server, port := "", ""
	for line := range strings.SplitSeq(strings.ReplaceAll(string(content), "\r", ""), "\n") {
		if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue
		}
		words := strings.Fields(line)
		if strings.Join(words, " ") != line {
			say("%q has other blanks than one between two words", line)
		}
		switch {
		case len(words) == 2 && words[0] == "nameserver":
			server = words[1]
		case len(words) == 2 && words[0] == "port":
			port = words[1]
		}
	}
	switch {
	case server != z.Server.Addr().String():
		say("the name server is %q, not %s", server, z.Server.Addr())
	case port == "":
		say("no port: macOS asks port 53")
	case port == "5353":
		say("port 5353 is mDNSResponder's own: it asks itself")
	case port != fmt.Sprint(z.Server.Port()):
		say("the port is %s, not %d", port, z.Server.Port())
	}
	return found
}
