package localhost

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/gominimal/minhost/linux/hook"
)

var update = flag.Bool("update", false, "write the goldens")

func programs(t *testing.T, c Config) []Program {
	t.Helper()
	ps, err := Programs(c)
	if err != nil {
		t.Fatal(err)
	}
	return ps
}

// The programs as text. Read the diff: each line is an address that a box gets or not.
func TestGolden(t *testing.T) {
	for _, p := range programs(t, Config{NetnsCookie: 0x1234, Level: 3, Multipath: true}) {
		got := fmt.Sprintf("%s %s %s\n%v", p.Name, p.Type, p.Attach, p.Instructions)
		file := filepath.Join("testdata", p.Role+".txt")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs (go test -update writes it):\n%s", file, got)
		}
	}
}

// Whatever changes a program changes its name, and nothing else does.
func TestNames(t *testing.T) {
	base := Config{NetnsCookie: 0x1234, Level: 3, Multipath: true}
	again := programs(t, base)
	seen := map[string]bool{}
	for i, p := range programs(t, base) {
		if len(p.Name) != 15 || !hook.Ours(p.Role, p.Name) || p.Name != again[i].Name || seen[p.Role] {
			t.Errorf("name %q, then %q", p.Name, again[i].Name)
		}
		seen[p.Role] = true
		for j, q := range again {
			if hook.Ours(p.Role, q.Name) != (i == j) {
				t.Errorf("%s taken for %s", q.Name, p.Role)
			}
		}
		for _, foreign := range []string{"", p.Role, "minhost", p.Role + "00000", p.Role + "0000000", p.Role + "00000z", "sd_bind", "x" + p.Name} {
			if hook.Ours(p.Role, foreign) {
				t.Errorf("%q taken for ours", foreign)
			}
		}
	}
	for _, c := range []Config{{NetnsCookie: 0x1235, Level: 3, Multipath: true}, {NetnsCookie: 0x1234, Level: 4, Multipath: true}} {
		for i, p := range programs(t, c) {
			// postBind6 asks for no namespace: the notes that it reads are made in the right one only. receive asks
			// for nothing but marks.
			if same := p.Name == again[i].Name; same != (p.Role == "minhost_O" && c.Level == 3 || p.Role == "minhost_P") {
				t.Errorf("%+v: %s, then %s", c, again[i].Name, p.Name)
			}
		}
	}
}

// Each mark of the table is part of the program that asks for it, and of no other.
func TestMarksInNames(t *testing.T) {
	base := Config{NetnsCookie: 0x1234, Level: 3}
	before := programs(t, base)
	for _, m := range []Marks{{0x40000000, 0x1000ffff, 0x08000000}, {0x60000000, 0x0000ffff, 0x08000000}, {0x60000000, 0x1000ffff, 0x04000000}} {
		base.Marks = m
		for i, p := range programs(t, base) {
			if changed := p.Name != before[i].Name; changed != (p.Role == "minhost_P") {
				t.Errorf("%x: %s, then %s", m, before[i].Name, p.Name)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	for word, bad := range map[string]Config{"cookie": {Level: 3}, "level": {NetnsCookie: 1}, "256": {NetnsCookie: 1, Level: 256}, "marks": {NetnsCookie: 1, Level: 3, Marks: Marks{Sent: 1, Vary: 1, Admit: 2}}} {
		if ps, err := Programs(bad); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%+v: %d programs, %v", bad, len(ps), err)
		}
	}
}

// Every label is led to, and each program ends with an answer.
func TestEveryJumpLands(t *testing.T) {
	for _, p := range programs(t, Config{NetnsCookie: 1, Level: 1, Multipath: true}) {
		offsets, err := p.Instructions.SymbolOffsets()
		if err != nil {
			t.Fatal(err)
		}
		used := map[string]bool{}
		for _, ins := range p.Instructions {
			used[ins.Reference()] = true
			if _, ok := offsets[ins.Reference()]; ins.Reference() != "" && !ins.IsLoadFromMap() && !ok {
				t.Errorf("%s: jump to %q", p.Role, ins.Reference())
			}
		}
		for label := range offsets {
			if !used[label] {
				t.Errorf("%s: nothing leads to %q", p.Role, label)
			}
		}
		if last := p.Instructions[len(p.Instructions)-1]; last.OpCode.JumpOp() != asm.Exit && last.OpCode.JumpOp() != asm.Ja {
			t.Errorf("%s ends with %v", p.Role, last)
		}
	}
}
