package resolved

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/gominimal/minhost/installer"
)

// delegateID is the name of our file in dns-delegate.d without its ending, and resolved's name for what it
// makes of it.
const delegateID = "minhost"

var (
	// ErrNoDelegate: resolved knows delegates, and has none of that name.
	ErrNoDelegate = errors.New("systemd-resolved has no such delegate")
	// ErrNoDelegates: resolved does not know what a delegate is (before 258).
	ErrNoDelegates = errors.New("systemd-resolved knows no delegates")
)

// Delegate is what resolved made of one file of dns-delegate.d (systemd 258 and later). Its modes cannot be
// set: they are those of resolved.conf.
type Delegate struct {
	DefaultRoute bool
	Servers      []netip.AddrPort
	Domains      []Domain
	// DNSOverTLS is the mode of all of resolved.
	DNSOverTLS string
}

// DelegateFile is our file. It is harmless where nobody reads it, and loaded by the first resolved that does.
func (p Params) DelegateFile() installer.File {
	return installer.File{
		Path: "/etc/systemd/dns-delegate.d/" + delegateID + ".dns-delegate", Mode: 0o644,
		Content: fmt.Appendf(nil, "%s[Delegate]\nDNS=%s\nDomains=~%s\nDefaultRoute=no\n", marker, p.Answerer, p.Zone),
	}
}

// wrong names what of a delegate is not as our file has it: a file with the same name in /run, or a
// drop-in, changes it.
func (p Params) wrong(d Delegate) string {
	switch {
	case d.DefaultRoute:
		return "delegate " + delegateID + " is a default route for names"
	case !slices.Equal(d.Servers, []netip.AddrPort{p.Answerer}):
		return fmt.Sprintf("servers of delegate %s are %v, not %v", delegateID, d.Servers, p.Answerer)
	case !slices.Equal(d.Domains, []Domain{{p.Zone, true}}):
		return fmt.Sprintf("domains of delegate %s are %v, not ~%s", delegateID, d.Domains, p.Zone)
	}
	return ""
}

// strict is the cause why no delegate can work here: the answerer speaks no TLS.
func (d Delegate) strict() string {
	if d.DNSOverTLS == "yes" {
		return "DNSOverTLS=yes of resolved.conf is a delegate's too"
	}
	return ""
}

// delegated tells whether resolved has our delegate, as our file has it: no link is needed then. later: it
// knows delegates, and will have ours when it starts again.
func (s *NamesStep) delegated(ctx context.Context) (yes, later bool, err error) {
	d, err := s.Bus.Delegate(ctx, delegateID)
	if errors.Is(err, ErrNoDelegate) || errors.Is(err, ErrNoDelegates) {
		return false, errors.Is(err, ErrNoDelegate), nil
	}
	return err == nil && s.Params.wrong(d) == "" && d.strict() == "", false, err
}
