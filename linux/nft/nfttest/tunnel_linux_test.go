package nfttest

import (
	"testing"
)

// TestTunnel: packets of a tunnel of the host (VXLAN here; WireGuard and the rest are the same) keep the socket of what
// they carry, since Linux 4.19, and pass the hooks a second time as that socket's: a list of a box that goes through one
// names the tunnel's other end too. That end alone opens nothing behind it. An open box needs nothing.
func TestTunnel(t *testing.T) {
	l := newLab(t)
	l.belt()
	o := newOutside(l)
	tunnel := func(dev, remote, local, addr4, addr6 string) {
		l.run("ip", "link", "add", "vx0", "type", "vxlan", "id", "7", "dstport", "4789", "remote", remote, "local", local, "dev", dev)
		l.run("ip", "addr", "add", addr4, "dev", "vx0")
		l.run("ip", "addr", "add", addr6, "dev", "vx0", "nodad")
		l.run("ip", "link", "set", "vx0", "up")
	}
	tunnel(o.NearLink, o.far(), o.near(), "10.77.0.1/24", "fd77::1/64")
	t.Cleanup(func() { l.run("ip", "link", "del", "vx0") })
	o.do(func() { tunnel(o.FarLink, o.near(), o.far(), "10.77.0.2/24", "fd77::2/64") })
	end, behind := o.far()+" 4789 udp", []string{"10.77.0.2 8000 tcp", "10.77.0.2 8000 udp", "fd77::2 8000 tcp", "fd77::2 8000 udp"}
	both, inner, outer, open, closed := l.box(allow(t, append(behind, end)...)), l.box(allow(t, behind...)), l.box(allow(t, end)), l.box(openEgress()), l.box(deny())
	for _, network := range []string{"tcp", "udp"} {
		o.echo(network, ":8000")
		for _, to := range []string{"10.77.0.2:8000", "[fd77::2]:8000"} {
			l.reaches(both, network, to)
			l.reaches(open, network, to)
			l.refused(outer, network, to)
			l.refused(closed, network, to)
			if got := l.dial(inner, network, to); got.OK() {
				t.Errorf("%s %s without its end: %v", network, to, got)
			}
		}
		l.refused(both, network, o.far()+":8000")
	}
}
