package hook

import "strings"

// Ours tells whether a loaded program with this name fills a role, in this or another version: the name is
// the role and six hex digits.
func Ours(role, name string) bool {
	rest, ok := strings.CutPrefix(name, role)
	return ok && len(rest) == 6 && strings.Trim(rest, "0123456789abcdef") == ""
}
