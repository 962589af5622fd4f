package strict

import (
	"testing"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

// BenchmarkRun is the whole of `minhost run -- true`, as its caller waits for it.
func BenchmarkRun(b *testing.B) {
	rig.Bare(b)
	rig.Install(b)
	for _, c := range []struct {
		name  string
		flags []string
	}{
		{"open", nil}, {"cooperative", []string{"--egress", "deny", "--no-strict"}},
		{"strict", []string{"--egress", "deny", "--strict"}}, {"none", []string{"--mode", "none"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				args := append(append([]string{"run"}, c.flags...), "--", "/bin/true")
				if r := rig.As(b, rig.User, args...); r.Status != 0 {
					b.Fatal(r)
				}
			}
		})
	}
}
