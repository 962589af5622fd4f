package fakedarwin

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
)

// Alias is an address of the model's lo0.
type Alias struct {
	Addr netip.Addr
	Mask uint32
}

// resetLo0 gives lo0 what a boot gives it, and the kernel below too: there 127.0.0.1 is /32, so that any
// other address of 127/8 is absent until it is added.
func (m *Mac) resetLo0() error {
	home := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	m.mu.Lock()
	m.lo0 = []Alias{{home, 0xff000000}}
	m.mu.Unlock()
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	all, err := netlink.AddrList(lo, netlink.FAMILY_V4)
	if err != nil {
		return err
	}
	for _, a := range all {
		if err := netlink.AddrDel(lo, &a); err != nil {
			return fmt.Errorf("remove %s: %w", a.IPNet, err)
		}
	}
	return kernelAdd(home)
}

func (m *Mac) clearLo0() { m.resetLo0() }

func kernelAddr(a netip.Addr) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(32, 32)}, Scope: int(netlink.SCOPE_HOST)}
}

func kernelAdd(a netip.Addr) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(lo, kernelAddr(a)); err != nil && !errors.Is(err, syscall.EEXIST) {
		return err
	}
	return nil
}

func kernelRemove(a netip.Addr) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.AddrDel(lo, kernelAddr(a))
}

// Aliases is what lo0 has.
func (m *Mac) Aliases() []Alias {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.lo0)
}

// SetAlias is somebody else's hand on lo0.
func (m *Mac) SetAlias(a Alias) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(a)
	return kernelAdd(a.Addr)
}

func (m *Mac) put(a Alias) {
	i := slices.IndexFunc(m.lo0, func(o Alias) bool { return o.Addr == a.Addr })
	if i >= 0 {
		m.lo0[i] = a
		return
	}
	m.lo0 = append(m.lo0, a)
}

// ifconfig knows "lo0", "lo0 alias A [netmask M]" and "lo0 -alias A".
func (m *Mac) ifconfig(c Call) Answer {
	if len(c.Args) > 1 && c.Args[1] == "alias" {
		time.Sleep(m.SlowAdds)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(c.Args) == 0 || c.Args[0] != "lo0":
		return fail(1, "ifconfig: interface does not exist")
	case len(c.Args) == 1:
		return Answer{Stdout: m.showLo0()}
	case len(c.Args) < 3 || c.Args[1] != "alias" && c.Args[1] != "-alias":
		return fail(1, "ifconfig: bad value")
	case c.uid != 0:
		return fail(1, "ifconfig: ioctl (SIOCAIFADDR): permission denied")
	}
	return m.change(c.Args[1], c.Args[2], c.Args[3:])
}

// change adds, re-adds or removes. What has no mask gets that of its class, /8.
func (m *Mac) change(verb, text string, rest []string) Answer {
	mask := uint32(0xff000000)
	if len(rest) == 2 && rest[0] == "netmask" {
		b, err := netip.ParseAddr(rest[1])
		if err != nil || !b.Is4() {
			return fail(1, "ifconfig: bad netmask %s", rest[1])
		}
		x := b.As4()
		mask = uint32(x[0])<<24 | uint32(x[1])<<16 | uint32(x[2])<<8 | uint32(x[3])
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(text, "/32"))
	if err != nil {
		return fail(1, "ifconfig: bad address %s", text)
	}
	if verb == "-alias" {
		i := slices.IndexFunc(m.lo0, func(o Alias) bool { return o.Addr == addr })
		if i < 0 {
			return fail(1, "ifconfig: ioctl (SIOCDIFADDR): Can't assign requested address")
		}
		m.lo0 = slices.Delete(m.lo0, i, i+1)
		err = kernelRemove(addr)
	} else {
		if m.FailAdds[addr.String()] > 0 {
			m.FailAdds[addr.String()]--
			return fail(1, "ifconfig: ioctl (SIOCAIFADDR): Device busy")
		}
		m.put(Alias{addr, mask})
		err = kernelAdd(addr)
	}
	if err != nil {
		return fail(70, "model: %v", err)
	}
	return Answer{}
}

func (m *Mac) showLo0() string {
	out := "lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> mtu 16384\n\toptions=1203<RXCSUM,TXCSUM,TXSTATUS,SW_TIMESTAMP>\n"
	for _, a := range m.lo0 {
		out += fmt.Sprintf("\tinet %s netmask 0x%08x\n", a.Addr, a.Mask)
	}
	return out + "\tinet6 ::1 prefixlen 128\n\tnd6 options=201<PERFORMNUD,DAD>\n"
}
