package nfttest

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func (l *lab) clashes() []string {
	l.Helper()
	out, err := l.table.MarkClashes(l.ctx())
	l.must(err)
	return out
}

// Rules of others that set our mark bits or copy them are named, with where they stand; others are not, nor are
// ours.
func TestMarkClashes(t *testing.T) {
	l := newLab(t)
	l.box(deny())
	l.run("nft", "add table ip theirs; add chain ip theirs c { type filter hook output priority 0; }")
	t.Cleanup(func() { l.run("nft", "delete table ip theirs") })
	for _, rule := range []string{"meta mark set 0x80000001", "meta mark 0x40000000 counter", "meta mark set meta mark or 0x00ff0000", "ct mark set 0x4000",
		"meta mark set meta mark and 0x0fffffff", "meta mark set ct mark and 0x00ff0000", "ct mark set meta mark and 0x00ff0000"} {
		l.run("nft", "add rule ip theirs c "+rule)
	}
	if got := l.clashes(); len(got) != 0 {
		t.Errorf("clashes: %q", got)
	}
	var want []string
	for rule, text := range map[string]string{
		"meta mark set 0x40000001":              "sets the mark bits 0x40000000",
		"meta mark set meta mark or 0x20000000": "sets the mark bits 0x20000000",
		"ct mark set 0x18000000":                "sets the mark bits 0x18000000",
		"meta mark set 0x04000000":              "sets the mark bits 0x4000000",
		"meta mark set ct mark":                 "copies the mark bits 0x7e000000 between packets and connections",
		"ct mark set meta mark and 0xf0000000":  "copies the mark bits 0x70000000 between packets and connections",
	} {
		l.run("nft", "add rule ip theirs c "+rule)
		want = append(want, "table ip theirs, chain c "+text+" (nft -a list chain ip theirs c: handle ")
	}
	got := l.clashes()
	for i, g := range got {
		got[i] = g[:strings.LastIndex(g, " ")+1]
	}
	if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("clashes: %q", got)
	}
}

// The same for MARK and CONNMARK of iptables, of both kinds and both families. Asking makes no table.
func TestIptablesClashes(t *testing.T) {
	for program, who := range map[string]string{
		"iptables-nft": "table ip mangle, chain OUTPUT ", "ip6tables-nft": "table ip6 mangle, chain OUTPUT ",
		"iptables-legacy": "a rule of iptables-legacy ", "ip6tables-legacy": "a rule of ip6tables-legacy ",
	} {
		t.Run(program, func(t *testing.T) {
			path, err := exec.LookPath(program)
			if err != nil {
				t.Skip("SKIP root: no " + program)
			}
			l := newLab(t)
			names := "/proc/thread-self/net/ip_tables_names"
			before, _ := os.ReadFile(names)
			if got := l.clashes(); len(got) != 0 {
				t.Fatalf("before: %q", got)
			}
			if after, _ := os.ReadFile(names); string(after) != string(before) {
				t.Errorf("tables %q, then %q: asking made one", before, after)
			}
			if out, err := exec.Command(path, "-t", "mangle", "-S").CombinedOutput(); err != nil {
				t.Skipf("SKIP root: no kernel for %s: %s", program, out)
			}
			t.Cleanup(func() { l.run(path, "-t", "mangle", "-F"); l.run(path, "-t", "mangle", "-X") })
			l.run(path, "-t", "mangle", "-N", "mine")
			for _, rule := range [][]string{
				{"OUTPUT", "-p", "tcp", "--dport", "80", "-j", "MARK", "--set-xmark", "0x1/0xffffffff"}, {"OUTPUT", "-j", "CONNMARK", "--restore-mark", "--mask", "0xff0000"},
				{"OUTPUT", "-j", "CONNMARK", "--set-mark", "0x80000000/0x80000000"}, {"mine", "-m", "comment", "--comment", "theirs", "-j", "ACCEPT"},
			} {
				l.run(path, append([]string{"-t", "mangle", "-A"}, rule...)...)
			}
			if got := l.clashes(); len(got) != 0 {
				t.Errorf("free marks: %q", got)
			}
			for rule, want := range map[string]string{
				"MARK --set-xmark 0x40000000/0x40000000": "sets the mark bits 0x40000000", "CONNMARK --set-mark 0x20000000": "sets the mark bits 0x20000000",
				"CONNMARK --restore-mark": "copies the mark bits 0x7e000000 ", "CONNMARK --save-mark --mask 0x60000000": "copies the mark bits 0x60000000 ",
			} {
				l.run(path, append([]string{"-t", "mangle", "-A", "OUTPUT", "-j"}, strings.Fields(rule)...)...)
				if got := l.clashes(); len(got) != 1 || !strings.HasPrefix(got[0], who+want) {
					t.Errorf("%s: %q", rule, got)
				}
				l.run(path, append([]string{"-t", "mangle", "-D", "OUTPUT", "-j"}, strings.Fields(rule)...)...)
			}
		})
	}
}
