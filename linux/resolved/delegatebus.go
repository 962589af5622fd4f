package resolved

import (
	"context"
	"errors"
	"fmt"

	"github.com/godbus/dbus/v5"
)

// Delegate reads what resolved holds about the delegate of that name.
func (d DBus) Delegate(ctx context.Context, name string) (found Delegate, err error) {
	err = d.with(ctx, func(ctx context.Context, conn *dbus.Conn) error {
		var path dbus.ObjectPath
		err := conn.Object(resolveName, resolvePath).CallWithContext(ctx, managerIface+".GetDelegate", 0, name).Store(&path)
		var e dbus.Error
		if errors.As(err, &e) && e.Name == "org.freedesktop.DBus.Error.UnknownMethod" {
			return ErrNoDelegates
		}
		if errors.As(err, &e) && e.Name == resolveName+".NoSuchDelegate" {
			err = ErrNoDelegate
		}
		if err != nil {
			return fmt.Errorf("read delegate %s: %w", name, err)
		}
		var servers []wireServer
		var domains []wireDomain
		for _, p := range []struct {
			path  dbus.ObjectPath
			iface string
			name  string
			into  any
		}{
			{path, delegateIface, "DNS", &servers}, {path, delegateIface, "Domains", &domains},
			{path, delegateIface, "DefaultRoute", &found.DefaultRoute}, {resolvePath, managerIface, "DNSOverTLS", &found.DNSOverTLS},
		} {
			if err := get(ctx, conn, p.path, p.iface, p.name, p.into); err != nil {
				return err
			}
		}
		for _, w := range servers {
			if a, ok := addrPort(w.Addr, w.Port); ok {
				found.Servers = append(found.Servers, a)
			}
		}
		for _, w := range domains {
			found.Domains = append(found.Domains, Domain(w))
		}
		return nil
	})
	return found, err
}
