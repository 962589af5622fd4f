package belt

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
		out = append(out, hooktest.Program(p))
	}
	return out
}

func foreign() Config {
	c := Default(0x1234)
	c.MarkForeign = true
	return c
}

func TestGolden(t *testing.T) {
	hooktest.Golden(t, all(t, Default(0x1234)), "")
	hooktest.Golden(t, all(t, foreign()), "-foreign")
}

func TestEveryJumpLands(t *testing.T) {
	hooktest.Lands(t, all(t, Default(1)))
	hooktest.Lands(t, all(t, foreign()))
}

// Whatever changes a program changes its name, and nothing else does.
func TestNames(t *testing.T) {
	base := Default(0x1234)
	again := programs(t, base)
	hooktest.Names(t, all(t, base), all(t, base))
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
