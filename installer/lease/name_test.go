package lease

import (
	"strings"
	"testing"
)

func TestParseName(t *testing.T) {
	label := strings.Repeat("a", 63)
	for in, want := range map[string]string{
		"web": "web", "WEB": "web", "a.b.c": "a.b.c", "x-1": "x-1", "1": "1", label: label,
		// refused
		"": "", "a.b.c.d": "", "-a": "", "a-": "", "a..b": "", ".a": "", "a.": "", "a_b": "", "a b": "", "ä": "", "\u212a": "", "a/b": "", "../x": "",
		label + "a": "", "host": "", "Minhost": "", strings.Join([]string{label, label, label}, ".") + "x": "", "a\x00": "", "a\n": "",
		label + "." + label + "." + strings.Repeat("b", 62): label + "." + label + "." + strings.Repeat("b", 62),
		"host.a": "host.a",
	} {
		got, err := ParseName(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%.20q: %q, %v", in, got, err)
		}
	}
}

func TestIDsNeverLeaveTheFolder(t *testing.T) {
	for _, s := range []string{"", "..", "../x", "b/..", "b0123456789abcde", "b0123456789abcdeg", "B0123456789abcdef"} {
		if ValidID(s) {
			t.Errorf("%q is taken for an id", s)
		}
	}
	if id := NewID(); !ValidID(id) || id == NewID() {
		t.Errorf("id %q", id)
	}
}
