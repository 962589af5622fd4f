package belt

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

// The programs as text. Read the diff: each line is a packet let through or not.
func TestGolden(t *testing.T) {
	golden(t, Default(0x1234), "")
	foreign := Default(0x1234)
	foreign.MarkForeign = true
	golden(t, foreign, "-foreign")
}

func golden(t *testing.T, c Config, suffix string) {
	t.Helper()
	for _, p := range programs(t, c) {
		got := fmt.Sprintf("%s %s %s\n%v", p.Name, p.Type, p.Attach, p.Instructions)
		file := filepath.Join("testdata", p.Role+suffix+".txt")
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
	base := Default(0x1234)
	again := programs(t, base)
	for i, p := range programs(t, base) {
		if len(p.Name) != 15 || !hook.Ours(p.Role, p.Name) || p.Name != again[i].Name {
			t.Errorf("name %q, then %q", p.Name, again[i].Name)
		}
		for j, q := range again {
			if hook.Ours(p.Role, q.Name) != (i == j) {
				t.Errorf("%s taken for %s", q.Name, p.Role)
			}
		}
		for _, foreign := range []string{"", p.Role, "minhost", p.Role + "00000", p.Role + "0000000", p.Role + "00000z", "sd_fw_egress", "x" + p.Name} {
			if hook.Ours(p.Role, foreign) {
				t.Errorf("%q taken for ours", foreign)
			}
		}
	}
	const e, i, s = 1, 2, 4 // the programs that must change
	for _, c := range []struct {
		name   string
		change func(*Config)
		which  int
	}{
		{"approve", func(c *Config) { c.Approve = 0x80000000 }, e | s},
		{"lease", func(c *Config) { c.Lease = 0x02000000 }, e | s},
		{"admit", func(c *Config) { c.Admit = 0x02000000 }, i | s},
		{"host", func(c *Config) { c.Host = 0x02000000 }, s},
		{"cookie", func(c *Config) { c.NetnsCookie++ }, e | i | s},
		{"foreign bit alone", func(c *Config) { c.Foreign = 0x02000000 }, s},
		{"every packet", func(c *Config) { c.EveryPacket = true }, e | i},
		{"every option", func(c *Config) { c.EveryOption = true }, s},
	} {
		changed := base
		c.change(&changed)
		for n, p := range programs(t, changed) {
			if want := c.which&(1<<n) != 0; (p.Name != again[n].Name) != want {
				t.Errorf("%s: %s changed: %v, want %v", c.name, p.Role, !want, want)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	for word, bad := range map[string]Config{
		"approve":   {Approve: 0, Lease: 2, Admit: 4, Host: 8, Foreign: 16, NetnsCookie: 1},
		"lease":     {Approve: 1, Lease: 6, Admit: 8, Host: 16, Foreign: 32, NetnsCookie: 1},
		"admit":     {Approve: 1, Lease: 2, Admit: 0, Host: 8, Foreign: 16, NetnsCookie: 1},
		"shares":    {Approve: 1, Lease: 2, Admit: 2, Host: 8, Foreign: 16, NetnsCookie: 1},
		"namespace": {Approve: 1, Lease: 2, Admit: 4, Host: 8, Foreign: 16},
		"host":      {Approve: 1, Lease: 2, Admit: 4, Foreign: 16, NetnsCookie: 1},
		"foreign":   {Approve: 1, Lease: 2, Admit: 4, Host: 8, Foreign: 4, NetnsCookie: 1},
		"only":      {Approve: 1, Lease: 2, Admit: 4, Host: 8, Foreign: 16, MarkForeign: true, EveryPacket: true, NetnsCookie: 1},
	} {
		ps, err := Programs(bad)
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%+v: %d programs, %v", bad, len(ps), err)
		}
	}
}

// Every way through a program ends in an answer, and each label leads somewhere.
func TestEveryJumpLands(t *testing.T) {
	foreign := Default(1)
	foreign.MarkForeign = true
	for _, p := range append(programs(t, Default(1)), programs(t, foreign)...) {
		offsets, err := p.Instructions.SymbolOffsets()
		if err != nil {
			t.Fatal(err)
		}
		used := map[string]bool{}
		for _, ins := range p.Instructions {
			if ref := ins.Reference(); ref != "" {
				used[ref] = true
				if _, ok := offsets[ref]; !ok {
					t.Errorf("%s: jump to %q", p.Role, ref)
				}
			}
		}
		for label := range offsets {
			if !used[label] {
				t.Errorf("%s: nothing leads to %q", p.Role, label)
			}
		}
		if last := p.Instructions[len(p.Instructions)-1]; last.OpCode.JumpOp() != asm.Exit {
			t.Errorf("%s ends with %v", p.Role, last)
		}
	}
}
