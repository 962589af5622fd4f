// Package zonefile is the text that carries the zone from the helper to the answerer.
//
// The writer replaces the file by a rename, the reader watches it; neither needs the other to be
// alive, so names survive a restart of either. The package turns a File into bytes and back. It
// opens no file, knows no leases and decides nothing: what a bad file means is the reader's matter.
//
// Format 1 is lines of ASCII, each ended by LF, fields parted by exactly one space:
//
//	minhost-zone 1 <boot id> <generation> <count>
//	<name> <address>
//
// The header gives the number of lines that follow it, so that a file cut at a line's end is
// found out. Names are box names below the zone, in ascending order of their bytes; an address is
// one that a lease can have, or "-" for a held name that has none now. There is one way to write
// a File, and Decode takes no other. testdata/v1.zone must parse for ever.
package zonefile

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Origin is the zone, as an absolute lower-case name.
const Origin = "min.internal."

const (
	// MaxNames bounds the names of one file.
	MaxNames = 16384
	// MaxBytes bounds a whole file: MaxNames of the longest lines, and the header.
	MaxBytes = MaxNames*(MaxName+1+len("127.0.64.253")+1) + 256

	magic   = "minhost-zone"
	version = "1"
	none    = "-"
)

// File is the content of a zone file.
type File struct {
	// BootID names the boot that the leases belong to: 1 to 64 letters, digits and hyphens. A
	// reader of another boot takes the file as empty.
	BootID string
	// Generation grows with every file of a boot. It becomes the serial of the zone.
	Generation uint64
	// Names holds box names without the zone ("web", "api.web"). An invalid Addr is a held name
	// without an address: its box is stopped, and lookups say "no data", not "no such name".
	Names map[string]netip.Addr
}

// Check tells whether f can be written: Decode(Encode(f)) is f again exactly when it returns nil.
func (f File) Check() error {
	if err := checkBootID(f.BootID); err != nil {
		return err
	}
	if len(f.Names) > MaxNames {
		return fmt.Errorf("zone of %d names: at most %d", len(f.Names), MaxNames)
	}
	for name, addr := range f.Names {
		if err := CheckName(name); err != nil {
			return err
		}
		if addr.IsValid() {
			if err := CheckAddr(addr); err != nil {
				return fmt.Errorf("name %s: %w", name, err)
			}
		}
	}
	return nil
}

// Encode renders f. It does not judge: bytes of a File that fails Check are refused by Decode, so a
// writer that forgot to check makes its readers keep the zone they have.
func Encode(f File) []byte {
	var b []byte
	b = fmt.Appendf(b, "%s %s %s %d %d\n", magic, version, f.BootID, f.Generation, len(f.Names))
	for _, name := range slices.Sorted(maps.Keys(f.Names)) {
		b = append(b, name...)
		b = append(b, ' ')
		if addr := f.Names[name]; addr.IsValid() {
			b = addr.AppendTo(b)
		} else {
			b = append(b, none...)
		}
		b = append(b, '\n')
	}
	return b
}

// Decode reads what Encode wrote. An error names the line and what is wrong with it, never the
// rest of the file.
func Decode(data []byte) (File, error) {
	names := map[string]netip.Addr{}
	f, err := Scan(string(data), func(name string, addr netip.Addr) { names[name] = addr })
	if err != nil {
		return File{}, err
	}
	f.Names = names
	return f, nil
}

// Scan is Decode for a reader who makes something else of the names than a map: each gets them one by
// one, in their order, and the File has none. After an error, what each got counts for nothing.
func Scan(text string, each func(name string, addr netip.Addr)) (File, error) {
	if len(text) > MaxBytes {
		return File{}, fmt.Errorf("zone file of %d bytes: at most %d", len(text), MaxBytes)
	}
	text, ended := strings.CutSuffix(text, "\n")
	if !ended {
		return File{}, fmt.Errorf("zone file: the last line has no end")
	}
	first, rest, more := strings.Cut(text, "\n")
	f, count, err := decodeHeader(first)
	if err != nil {
		return File{}, fmt.Errorf("zone file line 1: %w", err)
	}
	if lines := strings.Count(text, "\n"); count != lines {
		return File{}, fmt.Errorf("zone file: the header says %d names, the file has %d lines", count, lines)
	}
	last := ""
	for number := 2; more; number++ {
		var line string
		line, rest, more = strings.Cut(rest, "\n")
		name, addr, err := decodeLine(line)
		if err == nil && name <= last {
			err = fmt.Errorf("name %s after %s: not ascending", name, last)
		}
		if err != nil {
			return File{}, fmt.Errorf("zone file line %d: %w", number, err)
		}
		each(name, addr)
		last = name
	}
	return f, nil
}

func decodeHeader(line string) (f File, count int, err error) {
	fields := strings.Split(line, " ")
	if fields[0] != magic {
		return File{}, 0, fmt.Errorf("not a zone file of minhost")
	}
	if len(fields) > 1 && fields[1] != version {
		return File{}, 0, fmt.Errorf("format %s: this program reads format %s", Printable(fields[1]), version)
	}
	if len(fields) != 5 {
		return File{}, 0, fmt.Errorf("header of %d fields, want 5", len(fields))
	}
	if err := checkBootID(fields[2]); err != nil {
		return File{}, 0, err
	}
	generation, err := strconv.ParseUint(fields[3], 10, 64)
	if err != nil || strconv.FormatUint(generation, 10) != fields[3] {
		return File{}, 0, fmt.Errorf("generation %s: not a number", Printable(fields[3]))
	}
	count, err = strconv.Atoi(fields[4])
	if err != nil || strconv.Itoa(count) != fields[4] || count < 0 || count > MaxNames {
		return File{}, 0, fmt.Errorf("count %s: not a number from 0 to %d", Printable(fields[4]), MaxNames)
	}
	return File{BootID: fields[2], Generation: generation}, count, nil
}

func decodeLine(line string) (string, netip.Addr, error) {
	name, text, found := strings.Cut(line, " ")
	if !found {
		return "", netip.Addr{}, fmt.Errorf("no address")
	}
	if err := CheckName(name); err != nil {
		return "", netip.Addr{}, err
	}
	if text == none {
		return name, netip.Addr{}, nil
	}
	addr, err := netip.ParseAddr(text) // there is one way to write an IPv4 address, and CheckAddr takes no other
	if err != nil {
		return "", netip.Addr{}, fmt.Errorf("name %s: address %s: not an address", name, Printable(text))
	}
	if err := CheckAddr(addr); err != nil {
		return "", netip.Addr{}, fmt.Errorf("name %s: %w", name, err)
	}
	return name, addr, nil
}
