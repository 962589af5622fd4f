package localhost

import (
	"strings"
	"testing"

	"github.com/gominimal/minhost/linux/hook/hooktest"
)

func programs(t *testing.T, c Config) []Program {
	t.Helper()
	ps, err := Programs(c)
	if err != nil {
		t.Fatal(err)
	}
	return ps
}

// all are the programs as tests of programs take them.
func all(t *testing.T, c Config) (out []hooktest.Program) {
	t.Helper()
	for _, p := range programs(t, c) {
		out = append(out, hooktest.Program{Role: p.Role, Name: p.Name, Type: p.Type, Attach: p.Attach, Instructions: p.Instructions})
	}
	return out
}

func TestGolden(t *testing.T) {
	hooktest.Golden(t, all(t, Config{NetnsCookie: 0x1234, Level: 3, Multipath: true}), "")
}

func TestEveryJumpLands(t *testing.T) {
	hooktest.Lands(t, all(t, Config{NetnsCookie: 1, Level: 1, Multipath: true}))
}

// Whatever changes a program changes its name, and nothing else does.
func TestNames(t *testing.T) {
	base := Config{NetnsCookie: 0x1234, Level: 3, Multipath: true}
	again := programs(t, base)
	hooktest.Names(t, all(t, base), all(t, base))
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
