package resolved

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// netlinkWait bounds every answer of the kernel.
const netlinkWait = 2 * time.Second

// Netlink is the Links of the running host.
type Netlink struct{}

// kinds of link, in the order in which they are tried. Kernels without the dummy driver exist (cut
// down ones, and modules that an upgrade removed); one end of a veth pair serves as well, as long as the
// other end is up, and goes with it. The probe cannot know what the kernel has without making one:
// Create finds out.
func kinds(name string) []netlink.Link {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.Group = name, group
	return []netlink.Link{
		&netlink.Dummy{LinkAttrs: attrs},
		&netlink.Veth{LinkAttrs: attrs, PeerName: name + "-peer"},
	}
}

func open() (*netlink.Handle, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	if err := h.SetSocketTimeout(netlinkWait); err != nil {
		h.Close()
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	return h, nil
}

// Find reads the link and its IPv4 addresses of global scope.
func (Netlink) Find(_ context.Context, name string) (Link, bool, error) {
	h, err := open()
	if err != nil {
		return Link{}, false, err
	}
	defer h.Close()
	return find(h, name)
}

func find(h *netlink.Handle, name string) (Link, bool, error) {
	l, err := h.LinkByName(name)
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		return Link{}, false, nil
	}
	if err != nil {
		return Link{}, false, fmt.Errorf("read link %s: %w", name, err)
	}
	a := l.Attrs()
	found := Link{
		Index: a.Index,
		Kind:  l.Type(),
		Ours:  a.Group == group,
		Up:    a.RawFlags&(unix.IFF_UP|unix.IFF_LOWER_UP) == unix.IFF_UP|unix.IFF_LOWER_UP,
	}
	addrs, err := h.AddrList(l, unix.AF_INET)
	if err != nil {
		return Link{}, false, fmt.Errorf("read addresses of %s: %w", name, err)
	}
	for _, x := range addrs {
		ip, ok := netip.AddrFromSlice(x.IP.To4())
		ones, _ := x.Mask.Size()
		if ok && x.Scope == unix.RT_SCOPE_UNIVERSE {
			found.Addrs = append(found.Addrs, netip.PrefixFrom(ip, ones))
		}
	}
	return found, true, nil
}

// Create tries the kinds until the kernel has one.
func (Netlink) Create(ctx context.Context, name string, addr netip.Prefix) (Link, error) {
	if !addr.IsValid() {
		return Link{}, fmt.Errorf("make link %s: %v is no address", name, addr)
	}
	h, err := open()
	if err != nil {
		return Link{}, err
	}
	defer h.Close()
	var tried []string
	for _, l := range kinds(name) {
		err := h.LinkAdd(l)
		if errors.Is(err, unix.EOPNOTSUPP) {
			tried = append(tried, l.Type())
			continue
		}
		if err != nil {
			return Link{}, fmt.Errorf("make link %s: %w", name, err)
		}
		found, err := setUp(ctx, h, name, addr)
		if err != nil {
			return Link{}, errors.Join(fmt.Errorf("set up link %s (%s): %w", name, l.Type(), err), remove(h, name))
		}
		return found, nil
	}
	return Link{}, fmt.Errorf("make link %s: the kernel has no driver for any of %v: native resolution is not available; look names up with: dig @127.0.0.1 -p 15353 NAME", name, tried)
}

// setUp gives the new link its address, brings it up, and waits for its carrier.
func setUp(ctx context.Context, h *netlink.Handle, name string, addr netip.Prefix) (Link, error) {
	l, err := h.LinkByName(name)
	if err != nil {
		return Link{}, err
	}
	ends := []netlink.Link{l}
	if l.Type() == "veth" {
		peer, err := h.LinkByName(name + "-peer")
		if err != nil {
			return Link{}, err
		}
		ends = append(ends, peer)
	}
	ip := &net.IPNet{IP: addr.Addr().AsSlice(), Mask: net.CIDRMask(addr.Bits(), addr.Addr().BitLen())}
	if err := h.AddrAdd(l, &netlink.Addr{IPNet: ip, Scope: unix.RT_SCOPE_UNIVERSE}); err != nil {
		return Link{}, fmt.Errorf("add %s: %w", addr, err)
	}
	for _, end := range ends {
		// No link-local address: the link is for nothing but DNS. Fails where IPv6 is off.
		if err := h.LinkSetIP6AddrGenMode(end, nl.IN6_ADDR_GEN_MODE_NONE); err != nil && !errors.Is(err, unix.EAFNOSUPPORT) && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EINVAL) {
			return Link{}, fmt.Errorf("no link-local address: %w", err)
		}
		if err := h.LinkSetUp(end); err != nil {
			return Link{}, fmt.Errorf("bring up: %w", err)
		}
	}
	for end := time.Now().Add(netlinkWait); ; time.Sleep(5 * time.Millisecond) {
		found, ok, err := find(h, name)
		switch {
		case err != nil:
			return Link{}, err
		case ok && found.has(addr):
			return found, nil
		case ctx.Err() != nil:
			return Link{}, ctx.Err()
		case time.Now().After(end):
			return Link{}, errors.New("it gets no carrier")
		}
	}
}

// Delete removes the link if it is ours.
func (Netlink) Delete(_ context.Context, name string) error {
	h, err := open()
	if err != nil {
		return err
	}
	defer h.Close()
	return remove(h, name)
}

func remove(h *netlink.Handle, name string) error {
	l, err := h.LinkByName(name)
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove link %s: %w", name, err)
	}
	if l.Attrs().Group != group {
		return fmt.Errorf("remove link %s: not made by minhost, left as it is; look: ip -d link show %s", name, name)
	}
	if err := h.LinkDel(l); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove link %s: %w", name, err)
	}
	return nil
}
