package api_test

import (
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/api"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                                      "",
		"web.min.internal":                      "web.min.internal",
		"a b~":                                  "a b~",
		"\x1b[31mred":                           `\x1b[31mred`,
		"line\nfeed\r\t":                        `line\x0afeed\x0d\x09`,
		"back\\slash":                           `back\slash`,
		"\x7f\x00\xff":                          `\x7f\x00\xff`,
		"\u00fc\u202e":                          `\xc3\xbc\xe2\x80\xae`,
		strings.Repeat("a", 255):                strings.Repeat("a", 255),
		strings.Repeat("a", 256):                strings.Repeat("a", 252) + "...",
		strings.Repeat("a", 251) + "\x1b":       strings.Repeat("a", 251) + `\x1b`,
		strings.Repeat("a", 252) + "\x1b":       strings.Repeat("a", 252) + "...",
		strings.Repeat("a", 250) + "\x1b" + "b": strings.Repeat("a", 250) + `\x1bb`,
		strings.Repeat("a", 250) + "\x1bbc":     strings.Repeat("a", 250) + "...",
	} {
		if got := api.Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("\x1b]0;title\a")
	f.Add(strings.Repeat("\u00e9", 64))
	f.Fuzz(func(t *testing.T, s string) {
		got := api.Text(s)
		if len(got) > api.MaxText {
			t.Fatalf("%d octets", len(got))
		}
		if again := api.Text(got); again != got {
			t.Fatalf("%q, the second time %q", got, again)
		}
		for i := range len(got) {
			if got[i] < ' ' || got[i] > '~' {
				t.Fatalf("octet %#x in %q", got[i], got)
			}
		}
	})
}
