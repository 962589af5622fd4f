package netns

import "slices"

// device is what the judgement of a namespace needs to know about one of its devices.
type device struct {
	Name, Kind   string
	Loopback, Up bool
}

// fallback are the kinds of device that the kernel may put into every new namespace, once the module is
// loaded (net.core.fb_tunnels_only_for_init_net). They are down, and what they could reach is the namespace itself.
var fallback = []string{"ipip", "gre", "gretap", "erspan", "sit", "ip6tnl", "ip6gre", "ip6gretap", "ip6erspan", "vti", "vti6"}

// strangers names the devices that do not belong into an empty namespace.
func strangers(all []device) []string {
	var out []string
	for _, d := range all {
		if d.Loopback || !d.Up && slices.Contains(fallback, d.Kind) {
			continue
		}
		out = append(out, d.Name)
	}
	return out
}
