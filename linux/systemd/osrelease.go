package systemd

import "strings"

// OSRelease is what minhost reads of os-release(5).
type OSRelease struct {
	ID, VersionID, VariantID string
	IDLike                   []string
	// OSTree is set on image-based systems (OSTREE_VERSION): /usr is read-only there, /etc is not.
	OSTree bool
}

// ParseOSRelease reads os-release(5): one shell assignment a line, values bare or quoted.
func ParseOSRelease(text string) OSRelease {
	var r OSRelease
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || strings.HasPrefix(key, "#") {
			continue
		}
		value = unquote(value)
		switch key {
		case "ID":
			r.ID = value
		case "VERSION_ID":
			r.VersionID = value
		case "VARIANT_ID":
			r.VariantID = value
		case "ID_LIKE":
			r.IDLike = strings.Fields(value)
		case "OSTREE_VERSION":
			r.OSTree = value != ""
		}
	}
	return r
}

// unquote takes one pair of shell quotes away and, inside double quotes, the backslashes that
// os-release(5) allows before $ " \ and `.
func unquote(s string) string {
	if len(s) < 2 || s[0] != s[len(s)-1] || (s[0] != '"' && s[0] != '\'') {
		return s
	}
	double := s[0] == '"'
	s = s[1 : len(s)-1]
	if !double {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$\"\\`", s[i+1]) >= 0 {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
