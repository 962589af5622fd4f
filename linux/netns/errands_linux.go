package netns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/linux/errand"
)

// Names of the errands.
const (
	PrepareName = "netns-prepare"
	RemoveName  = "netns-remove"
)

// ErrNotEmpty: the namespace has devices that do not belong into a new one.
var ErrNotEmpty = errors.New("its network namespace is not empty")

// netlinkTime bounds one netlink request.
const netlinkTime = 5 * time.Second

// Tap is the device of an own-ip box.
type Tap struct {
	Name    string       `json:"name"`
	Address netip.Prefix `json:"address"`
	Gateway netip.Addr   `json:"gateway"`
	MTU     int          `json:"mtu"`
}

// Prepare makes a new namespace ready for a box: it must have no device but loopback, which is brought
// up; with a tap that device is made, with address and default route, and its descriptor returned. The tap
// lives as long as a descriptor of it is open, or until RemoveTaps. Frames are Ethernet without a header in
// front (IFF_NO_PI).
func (n *Namespace) Prepare(ctx context.Context, tap *Tap) (*os.File, error) {
	f, err := errand.Run(ctx, errand.Spec{Name: PrepareName, In: tap, Files: []*os.File{n.f}})
	if errors.Is(err, unix.ENOTEMPTY) { // an errno is all that an error keeps on its way here
		err = fmt.Errorf("%w: %w", ErrNotEmpty, err)
	}
	if err == nil && (f != nil) != (tap != nil) {
		err = errors.New("netns: the child made no tap, or one that nobody asked for")
	}
	return f, err
}

// RemoveTaps removes every tap in the namespace, whoever holds a descriptor of one. By name would not do: the
// box may have given the name to another.
func (n *Namespace) RemoveTaps(ctx context.Context) error {
	_, err := errand.Run(ctx, errand.Spec{Name: RemoveName, Files: []*os.File{n.f}})
	return err
}

// PrepareChild is the errand of Prepare.
func PrepareChild(in json.RawMessage, files []*os.File) (*os.File, error) {
	var tap *Tap
	if err := json.Unmarshal(in, &tap); err != nil {
		return nil, err
	}
	h, err := enter(files)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	all, err := devices(h)
	if err != nil {
		return nil, err
	}
	if odd := strangers(all); len(odd) > 0 {
		return nil, fmt.Errorf("%w: it has %s: %w", ErrNotEmpty, strings.Join(odd, ", "), unix.ENOTEMPTY)
	}
	lo, err := h.LinkByName("lo")
	if err == nil {
		err = h.LinkSetUp(lo)
	}
	if err != nil {
		return nil, fmt.Errorf("lo: %w", err)
	}
	if tap == nil {
		return nil, nil
	}
	f, err := makeTap(tap.Name)
	if err != nil {
		return nil, err
	}
	if err := configure(h, *tap); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", tap.Name, err)
	}
	return f, nil
}

// RemoveChild is the errand of RemoveTaps.
func RemoveChild(_ json.RawMessage, files []*os.File) (*os.File, error) {
	h, err := enter(files)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	links, err := h.LinkList()
	for _, l := range links {
		if _, ok := l.(*netlink.Tuntap); ok {
			err = errors.Join(err, h.LinkDel(l))
		}
	}
	return nil, err
}

// enter moves this thread into the namespace; the process ends in it.
func enter(files []*os.File) (*netlink.Handle, error) {
	if len(files) != 1 {
		return nil, errors.New("want the namespace as the one file")
	}
	if err := unix.Setns(int(files[0].Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, os.NewSyscallError("setns", err)
	}
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	return h, h.SetSocketTimeout(netlinkTime)
}

func devices(h *netlink.Handle) ([]device, error) {
	links, err := h.LinkList()
	var all []device
	for _, l := range links {
		a := l.Attrs()
		all = append(all, device{a.Name, l.Type(), a.Flags&net.FlagLoopback != 0, a.Flags&net.FlagUp != 0})
	}
	return all, err
}

// makeTap opens the device in the namespace of this thread: a tap belongs to the one that opened it.
func makeTap(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/dev/net/tun", Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	req, err := unix.NewIfreq(name)
	if err == nil {
		req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_TUN_EXCL)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("make %s: %w", name, err)
	}
	return f, nil
}

// configure gives the tap what the plan says.
func configure(h *netlink.Handle, t Tap) error {
	link, err := h.LinkByName(t.Name)
	if err != nil {
		return err
	}
	if err := h.LinkSetMTU(link, t.MTU); err != nil {
		return fmt.Errorf("mtu %d: %w", t.MTU, err)
	}
	a := &netlink.Addr{IPNet: &net.IPNet{IP: t.Address.Addr().AsSlice(), Mask: net.CIDRMask(t.Address.Bits(), t.Address.Addr().BitLen())}}
	if t.Address.Addr().Is6() {
		a.Flags = unix.IFA_F_NODAD // nobody else is there, and a tentative address cannot be bound for a second
	}
	if err := h.AddrAdd(link, a); err != nil {
		return fmt.Errorf("address %s: %w", t.Address, err)
	}
	if err := h.LinkSetUp(link); err != nil {
		return fmt.Errorf("up: %w", err)
	}
	if err := h.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: t.Gateway.AsSlice()}); err != nil {
		return fmt.Errorf("route by %s: %w", t.Gateway, err)
	}
	return nil
}
