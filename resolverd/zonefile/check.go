package zonefile

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

const (
	// MaxName is the longest box name in octets, MaxLabel the longest label of it, MaxLabels the
	// most labels. The zone's own two labels are not counted.
	MaxName   = 200
	MaxLabel  = 63
	MaxLabels = 3

	maxBootID    = 64
	maxPrintable = 255
)

// The addresses that a lease can have. .254 is the host as boxes see it, and never in a file.
var (
	firstAddr = netip.AddrFrom4([4]byte{127, 0, 64, 1})
	lastAddr  = netip.AddrFrom4([4]byte{127, 0, 64, 253})
)

// Reserved tells whether name answers for the host itself and so can be no box's.
func Reserved(name string) bool { return name == "host" || name == "minhost" }

// CheckName tells why name cannot be a box name: one to three labels of lower-case letters,
// digits and inner hyphens, and not reserved.
func CheckName(name string) error {
	if len(name) > MaxName {
		return fmt.Errorf("name of %d octets: at most %d", len(name), MaxName)
	}
	if Reserved(name) {
		return fmt.Errorf("name %s: reserved for the host", name)
	}
	if labels := strings.Count(name, ".") + 1; labels > MaxLabels {
		return fmt.Errorf("name %s: %d labels, at most %d", Printable(name), labels, MaxLabels)
	}
	for label := range strings.SplitSeq(name, ".") {
		if err := checkLabel(label); err != nil {
			return fmt.Errorf("name %s: %w", Printable(name), err)
		}
	}
	return nil
}

func checkLabel(label string) error {
	switch {
	case label == "":
		return fmt.Errorf("empty label")
	case len(label) > MaxLabel:
		return fmt.Errorf("label of %d octets, at most %d", len(label), MaxLabel)
	case label[0] == '-' || label[len(label)-1] == '-':
		return fmt.Errorf("label begins or ends with a hyphen")
	}
	for _, c := range []byte(label) {
		if c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return fmt.Errorf("character %s: only a-z, 0-9 and hyphen", strconv.QuoteToASCII(string(rune(c))))
		}
	}
	return nil
}

// CheckAddr tells why addr cannot be a lease's: outside 127.0.64.1 to 127.0.64.253.
func CheckAddr(addr netip.Addr) error {
	if !addr.Is4() || addr.Less(firstAddr) || lastAddr.Less(addr) {
		return fmt.Errorf("address %s: not in %s to %s", addr, firstAddr, lastAddr)
	}
	return nil
}

func checkBootID(id string) error {
	if id == "" || len(id) > maxBootID {
		return fmt.Errorf("boot id of %d octets: want 1 to %d", len(id), maxBootID)
	}
	for _, c := range []byte(id) {
		if c != '-' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return fmt.Errorf("boot id %s: only letters, digits and hyphens", Printable(id))
		}
	}
	return nil
}

// Printable quotes text that somebody else chose, for an error or a log: printable ASCII, cut at
// 255 octets.
func Printable(text string) string {
	quoted := strconv.QuoteToASCII(text[:min(len(text), maxPrintable)])
	return quoted[:min(len(quoted), maxPrintable)]
}
