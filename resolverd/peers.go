package resolverd

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// ownAddrsAge is how long a list of the host's addresses is believed when an address is not in it.
// So an address that the host has just got is known after that time, and a flood from strange
// addresses costs one listing per second.
const ownAddrsAge = time.Second

// peers tells whether an asker is on this host. The sockets are bound to loopback, which other
// hosts reach only where somebody routed it (route_localnet, a DNAT rule); those get silence.
type peers struct {
	list func() ([]net.Addr, error)
	now  func() time.Time

	mu     sync.Mutex
	own    map[netip.Addr]bool
	listed time.Time
}

// local is true of loopback addresses and of those that an interface of this host has: a program
// may bind any of them and ask from there.
func (p *peers) local(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if addr.IsLoopback() {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.own[addr] && p.now().Sub(p.listed) < ownAddrsAge {
		return true
	}
	if p.now().Sub(p.listed) >= ownAddrsAge {
		p.refresh()
	}
	return p.own[addr]
}

// refresh lists the interfaces. When that fails, nothing but loopback is local.
func (p *peers) refresh() {
	p.own, p.listed = map[netip.Addr]bool{}, p.now()
	addrs, err := p.list()
	if err != nil {
		return
	}
	for _, a := range addrs {
		if prefix, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(prefix.IP); ok {
				p.own[addr.Unmap()] = true
			}
		}
	}
}
