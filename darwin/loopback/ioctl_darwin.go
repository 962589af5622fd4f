package loopback

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/host"
)

// Kernel is the edge to lo0 by ioctl, without a program: 254 aliases take milliseconds instead of
// 254 processes.
type Kernel struct{ Gate host.Gate }

var _ Interfaces = Kernel{}

// List implements Interfaces, by the routing sysctl.
func (Kernel) List(context.Context) ([]Alias, error) {
	lo, err := net.InterfaceByName(Interface)
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", Interface, err)
	}
	addrs, err := lo.Addrs()
	if err != nil {
		return nil, fmt.Errorf("addresses of %s: %w", Interface, err)
	}
	var all []Alias
	for _, x := range addrs {
		n, ok := x.(*net.IPNet)
		if !ok || n.IP.To4() == nil {
			continue
		}
		a, _ := netip.AddrFromSlice(n.IP.To4())
		all = append(all, Alias{a, maskOf(n.Mask)})
	}
	return all, nil
}

// Set implements Interfaces.
func (k Kernel) Set(_ context.Context, a Alias) error {
	req := aliasReq(a)
	return k.ioctl("alias "+a.String(), unix.SIOCAIFADDR, unsafe.Pointer(&req))
}

// Remove implements Interfaces.
func (k Kernel) Remove(_ context.Context, a netip.Addr) error {
	req := ifReq(a)
	return k.ioctl("remove alias "+a.String(), unix.SIOCDIFADDR, unsafe.Pointer(&req))
}

func (k Kernel) ioctl(what string, request uint, arg unsafe.Pointer) error {
	if err := k.Gate.Pass(what); err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(arg)); errno != 0 {
		return os.NewSyscallError("ioctl", errno)
	}
	return nil
}
