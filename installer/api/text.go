package api

import (
	"fmt"
	"strings"
)

// MaxText is the length, in octets, that Text cuts at.
const MaxText = 255

// Text gives untrusted text in presentation form: printable ASCII stays, every other octet becomes
// \xNN (so that no terminal obeys it), and there are no more than MaxText octets. What is cut ends
// in "..."; an escape is never cut in half. A backslash stays one, so that text which went through
// Text before, in the helper, is shown as it came.
func Text(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		piece := escape(s[i])
		room := MaxText
		if i < len(s)-1 {
			room -= len("...")
		}
		if b.Len()+len(piece) > room && !fits(s[i:], MaxText-b.Len()) {
			b.WriteString("...")
			break
		}
		b.WriteString(piece)
	}
	return b.String()
}

func escape(c byte) string {
	if c >= ' ' && c <= '~' {
		return string(rune(c))
	}
	return fmt.Sprintf(`\x%02x`, c)
}

// fits says whether all of s, escaped, needs no more than room octets.
func fits(s string, room int) bool {
	need := 0
	for i := 0; i < len(s) && need <= room; i++ {
		need += len(escape(s[i]))
	}
	return need <= room
}
