package lease

import (
	"fmt"
	"strings"
)

// Limits of a box name (DESIGN.md section 2): 1 to 3 LDH labels (RFC 1123 2.1, RFC 5890 2.3.1).
const (
	maxName   = 200
	maxLabel  = 63
	maxLabels = 3
)

// reserved names answer 127.0.0.1 and can't be held.
var reserved = map[string]bool{"host": true, "minhost": true}

// ParseName folds a box name to lower case and checks it. The name is without the zone.
func ParseName(s string) (string, error) {
	if s == "" {
		return "", fmt.Errorf("a name has at least one letter or digit")
	}
	if len(s) > maxName {
		return "", fmt.Errorf("a name has at most %d letters, this one has %d", maxName, len(s))
	}
	name := strings.Map(lower, s)
	labels := strings.Split(name, ".")
	if len(labels) > maxLabels {
		return "", fmt.Errorf("a name has at most %d labels between dots, this one has %d", maxLabels, len(labels))
	}
	for _, l := range labels {
		if err := checkLabel(l); err != nil {
			return "", err
		}
	}
	if reserved[name] {
		return "", fmt.Errorf("%q is reserved: it always means this host", name)
	}
	return name, nil
}

// lower folds ASCII only: other letters that fold to it (the Kelvin sign) are no letters of a name.
func lower(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		r += 'a' - 'A'
	}
	return r
}

func checkLabel(l string) error {
	switch {
	case l == "":
		return fmt.Errorf("a label between dots is empty")
	case len(l) > maxLabel:
		return fmt.Errorf("a label has at most %d letters, %+q has %d", maxLabel, l[:12]+"...", len(l))
	case l[0] == '-' || l[len(l)-1] == '-':
		return fmt.Errorf("a label does not begin or end with '-'")
	}
	for _, c := range l {
		if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return fmt.Errorf("a name has letters a-z, digits, '-' and '.' only, not %+q", c)
		}
	}
	return nil
}
