package resolved

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	resolveName   = "org.freedesktop.resolve1"
	resolvePath   = "/org/freedesktop/resolve1"
	managerIface  = resolveName + ".Manager"
	linkIface     = resolveName + ".Link"
	delegateIface = resolveName + ".DnsDelegate"
	callTimeout   = 5 * time.Second
	inet          = 2 // AF_INET, the same number on every Linux
)

// DBus is the Bus of the running host. Open makes a connection of its own; every use of it closes it
// again, so a bus that restarts is no matter.
type DBus struct {
	Open func(context.Context) (*dbus.Conn, error)
}

// SystemBus speaks to the system bus.
func SystemBus() DBus {
	return DBus{Open: func(ctx context.Context) (*dbus.Conn, error) {
		return dbus.ConnectSystemBus(dbus.WithContext(ctx))
	}}
}

// with runs f with a connection and a deadline.
func (d DBus) with(ctx context.Context, f func(context.Context, *dbus.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := d.Open(ctx)
	if err != nil {
		return fmt.Errorf("connect to the system bus: %w", err)
	}
	defer conn.Close()
	return f(ctx, conn)
}

func (d DBus) Running(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := d.Open(ctx)
	if err != nil {
		return false, ctx.Err()
	}
	defer conn.Close()
	var has bool
	err = conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.NameHasOwner", 0, resolveName).Store(&has)
	return has, err
}

// Shapes of the D-Bus interface, org.freedesktop.resolve1(5).
type (
	wireServer struct { // a(iiayqs): link, family, address, port, name for TLS
		Index, Family int32
		Addr          []byte
		Port          uint16
		Name          string
	}
	wireLinkServer struct { // a(iayqs)
		Family int32
		Addr   []byte
		Port   uint16
		Name   string
	}
	wireDomain struct { // a(sb)
		Name        string
		RoutingOnly bool
	}
	wireAddress struct { // a(iiay)
		Index, Family int32
		Addr          []byte
	}
)

func get(ctx context.Context, conn *dbus.Conn, path dbus.ObjectPath, iface, property string, into any) error {
	var v dbus.Variant
	err := conn.Object(resolveName, path).CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, iface, property).Store(&v)
	if err == nil {
		err = v.Store(into)
	}
	if err != nil {
		return fmt.Errorf("read %s of systemd-resolved: %w", property, err)
	}
	return nil
}

func (d DBus) Servers(ctx context.Context) (servers, fallback []Server, err error) {
	err = d.with(ctx, func(ctx context.Context, conn *dbus.Conn) error {
		for _, p := range []struct {
			name string
			into *[]Server
		}{{"DNSEx", &servers}, {"FallbackDNSEx", &fallback}} {
			var wire []wireServer
			if err := get(ctx, conn, resolvePath, managerIface, p.name, &wire); err != nil {
				return err
			}
			for _, w := range wire {
				if a, ok := addrPort(w.Addr, w.Port); ok {
					*p.into = append(*p.into, Server{int(w.Index), a})
				}
			}
		}
		return nil
	})
	return servers, fallback, err
}

func (d DBus) Link(ctx context.Context, index int) (s State, err error) {
	err = d.with(ctx, func(ctx context.Context, conn *dbus.Conn) error {
		var path dbus.ObjectPath
		err := conn.Object(resolveName, resolvePath).CallWithContext(ctx, managerIface+".GetLink", 0, int32(index)).Store(&path)
		if err != nil {
			return named(err, "read link")
		}
		var servers []wireLinkServer
		var domains []wireDomain
		for _, p := range []struct {
			name string
			into any
		}{
			{"ScopesMask", &s.Scopes}, {"DefaultRoute", &s.DefaultRoute}, {"DNSEx", &servers}, {"Domains", &domains},
			{"DNSOverTLS", &s.DNSOverTLS}, {"DNSSEC", &s.DNSSEC}, {"LLMNR", &s.LLMNR}, {"MulticastDNS", &s.MulticastDNS},
		} {
			if err := get(ctx, conn, path, linkIface, p.name, p.into); err != nil {
				return err
			}
		}
		for _, w := range servers {
			if a, ok := addrPort(w.Addr, w.Port); ok {
				s.Servers = append(s.Servers, a)
			}
		}
		for _, w := range domains {
			s.Domains = append(s.Domains, Domain(w))
		}
		return nil
	})
	return s, err
}

// Set calls in an order in which no name but ours ever reaches the answerer: not a default route,
// then what is inherited otherwise, then the server, then the domain.
func (d DBus) Set(ctx context.Context, index int, want State) error {
	servers := make([]wireLinkServer, 0, len(want.Servers))
	for _, a := range want.Servers {
		servers = append(servers, wireLinkServer{Family: inet, Addr: a.Addr().AsSlice(), Port: a.Port()})
	}
	domains := make([]wireDomain, 0, len(want.Domains))
	for _, w := range want.Domains {
		domains = append(domains, wireDomain(w))
	}
	return d.with(ctx, func(ctx context.Context, conn *dbus.Conn) error {
		for _, c := range []struct {
			method string
			value  any
		}{
			{"SetLinkDefaultRoute", want.DefaultRoute},
			{"SetLinkDNSOverTLS", want.DNSOverTLS}, {"SetLinkDNSSEC", want.DNSSEC},
			{"SetLinkLLMNR", want.LLMNR}, {"SetLinkMulticastDNS", want.MulticastDNS},
			{"SetLinkDNSEx", servers}, {"SetLinkDomains", domains},
		} {
			err := conn.Object(resolveName, resolvePath).CallWithContext(ctx, managerIface+"."+c.method, 0, int32(index), c.value).Err
			if err != nil {
				return named(err, c.method)
			}
		}
		return nil
	})
}

func (d DBus) Revert(ctx context.Context, index int) error {
	return d.with(ctx, func(ctx context.Context, conn *dbus.Conn) error {
		return named(conn.Object(resolveName, resolvePath).CallWithContext(ctx, managerIface+".RevertLink", 0, int32(index)).Err, "RevertLink")
	})
}

func (d DBus) Resolve(ctx context.Context, name string) (addrs []netip.Addr, err error) {
	err = d.with(ctx, func(ctx context.Context, conn *dbus.Conn) error {
		var wire []wireAddress
		var canonical string
		var flags uint64
		err := conn.Object(resolveName, resolvePath).
			CallWithContext(ctx, managerIface+".ResolveHostname", 0, int32(0), name, int32(inet), uint64(0)).
			Store(&wire, &canonical, &flags)
		if err != nil {
			return fmt.Errorf("look up %s through systemd-resolved: %w", name, err)
		}
		for _, w := range wire {
			if a, ok := netip.AddrFromSlice(w.Addr); ok {
				addrs = append(addrs, a)
			}
		}
		return nil
	})
	return addrs, err
}

// named turns the two errors that callers act on into ours.
func named(err error, what string) error {
	if err == nil {
		return nil
	}
	var e dbus.Error
	if errors.As(err, &e) {
		switch e.Name {
		case resolveName + ".NoSuchLink":
			err = ErrNoLink
		case resolveName + ".LinkBusy":
			err = ErrManaged
		case "org.freedesktop.DBus.Error.UnknownMethod":
			err = fmt.Errorf("systemd-resolved is too old (246 is needed): %w", err)
		}
	}
	return fmt.Errorf("%s: %w", what, err)
}
