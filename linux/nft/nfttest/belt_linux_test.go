package nfttest

import (
	"testing"
)

// The same behaviour under the belt: it drops what the table does not mark, so every bit that is
// missing shows here. newLab puts the belt on in tests below this one.
func TestWithBelt(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"deny": TestDeny, "rules": TestRules, "self": TestSelf, "ping": TestPing, "lookups": TestLookups,
		"ingress": TestIngress, "both": TestBothDeclared, "lost": TestLostEntry, "wait": TestTimeWait,
		"nat": TestForeignNAT, "untracked": TestUntracked, "marked": TestForeignMark, "cut": TestCut, "let in": TestLetIn, "generation": TestGeneration,
	} {
		t.Run(name, test)
	}
}
