package netns

import (
	"slices"
	"testing"
)

// TestStrangers: an empty namespace has loopback, and what the kernel puts into every one, down.
func TestStrangers(t *testing.T) {
	lo, sit := device{Name: "lo", Kind: "device", Loopback: true}, device{Name: "sit0", Kind: "sit"}
	up := sit
	up.Up = true
	for name, c := range map[string]struct {
		all  []device
		want []string
	}{
		"empty":           {[]device{lo}, nil},
		"fallback, down":  {[]device{lo, sit, {Name: "ip6tnl0", Kind: "ip6tnl"}}, nil},
		"fallback, up":    {[]device{lo, up}, []string{"sit0"}},
		"veth, down":      {[]device{lo, {Name: "eth0", Kind: "veth"}}, []string{"eth0"}},
		"tap of somebody": {[]device{{Name: "tap0", Kind: "tuntap", Up: true}, lo}, []string{"tap0"}},
		"named lo":        {[]device{{Name: "lo", Kind: "dummy"}}, []string{"lo"}},
	} {
		if got := strangers(c.all); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
