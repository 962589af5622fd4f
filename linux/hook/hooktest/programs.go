// Package hooktest is what the tests of cgroup programs ask of each: that it is as its golden says, that it has a
// name of its own which changes with it, and that every way through it ends. It loads nothing into a kernel.
package hooktest

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/gominimal/minhost/linux/hook"
	"github.com/gominimal/minhost/verify/golden"
)

// Program is one, as linux/belt and linux/localhost make them.
type Program struct {
	Role, Name   string
	Type         ebpf.ProgramType
	Attach       ebpf.AttachType
	Instructions asm.Instructions
}

// Golden compares the text of each with testdata/ROLE+suffix.txt, or writes it. Read the diff: each line is a packet
// let through or not, an address given or not.
func Golden(t *testing.T, all []Program, suffix string) {
	t.Helper()
	for _, p := range all {
		got := fmt.Sprintf("%s %s %s\n%v", p.Name, p.Type, p.Attach, p.Instructions)
		golden.Check(t, filepath.Join("testdata", p.Role+suffix+".txt"), []byte(got))
	}
}

// Names requires that each is known by its name, for its own role alone, and has it again when made again.
func Names(t *testing.T, all, again []Program) {
	t.Helper()
	for i, p := range all {
		if len(p.Name) != 15 || !hook.Ours(p.Role, p.Name) || p.Name != again[i].Name {
			t.Errorf("name %q, then %q", p.Name, again[i].Name)
		}
		for j, q := range again {
			if hook.Ours(p.Role, q.Name) != (i == j) {
				t.Errorf("%s taken for %s", q.Name, p.Role)
			}
		}
	}
}

// Lands requires that each label is somewhere, that something leads to it, and that no program runs past its end.
func Lands(t *testing.T, all []Program) {
	t.Helper()
	for _, p := range all {
		offsets, err := p.Instructions.SymbolOffsets()
		if err != nil {
			t.Fatal(err)
		}
		used := map[string]bool{}
		for _, ins := range p.Instructions {
			ref := ins.Reference()
			used[ref] = true
			if _, ok := offsets[ref]; ref != "" && !ins.IsLoadFromMap() && !ok {
				t.Errorf("%s: jump to %q", p.Role, ref)
			}
		}
		for label := range offsets {
			if !used[label] {
				t.Errorf("%s: nothing leads to %q", p.Role, label)
			}
		}
		if last := p.Instructions[len(p.Instructions)-1].OpCode.JumpOp(); last != asm.Exit && last != asm.Ja {
			t.Errorf("%s ends with %v", p.Role, last)
		}
	}
}
