package helper

import (
	"fmt"
	"net/netip"
	"regexp"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// Bounds and defaults of a tap. The kernel's own bound is 65,521: a frame of 65,535 octets without its header.
const (
	defaultMTU = 1500
	minMTU     = 576 // what every IPv4 host must take (RFC 791)
	maxMTU     = 65520
	defaultTap = "tap0"
	maxAttempt = 64
)

// tapName is stricter than the kernel, which forbids "/", ":", spaces, "." and "..", and takes "%d" for a pattern.
var tapName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,14}$`)

// modeOf reads the mode of a plan with the fields that belong to it. Fields that contradict the mode are an
// error that names both: nothing is dropped silently.
func modeOf(in api.PlanIn, l *lease.Lease) error {
	l.Mode = lease.Mode(in.Mode)
	contradicts := func(field, value, why string) error {
		return &api.InvalidArgument{Field: field, Message: fmt.Sprintf("%s %s contradicts mode %s: %s", field, value, in.Mode, why),
			Next: "leave " + field + " out, or change the mode"}
	}
	switch {
	case in.Mode == api.ModeOwnIP && in.Tap == nil:
		return &api.InvalidArgument{Field: "tap", Message: "mode own_ip needs tap, and it is missing", Next: `add "tap": {"address": "10.0.2.15/24", "gateway": "10.0.2.2"}`}
	case in.Mode != api.ModeOwnIP && in.Tap != nil:
		return contradicts("tap", api.Text(in.Tap.Address), "only a box of mode own_ip has a tap")
	case in.Mode != api.ModeHost && in.Localhost != "":
		return contradicts("localhost", string(in.Localhost), "the box has a network namespace of its own, and its localhost in it")
	case in.Mode == api.ModeNone && in.Policy.Egress != api.EgressDeny:
		return contradicts("policy.egress", string(in.Policy.Egress), "its network is empty, so that it goes nowhere; use deny")
	}
	if in.Tap == nil {
		return nil
	}
	t, err := tapFrom(*in.Tap)
	l.Tap = t
	return err
}

// tapFrom checks a tap and fills in what was left out.
func tapFrom(in api.Tap) (lease.Tap, error) {
	t := lease.Tap{MTU: defaultMTU, Name: defaultTap}
	var err error
	if t.Address, err = netip.ParsePrefix(in.Address); err != nil {
		return t, invalid("tap.address", fmt.Errorf("%q is not an address with its subnet, like 10.0.2.15/24", api.Text(in.Address)))
	}
	if t.Gateway, err = netip.ParseAddr(in.Gateway); err != nil || t.Gateway.Zone() != "" {
		return t, invalid("tap.gateway", fmt.Errorf("%q is not an address", api.Text(in.Gateway)))
	}
	a := t.Address.Addr()
	switch {
	case !unicast(a) || a == t.Address.Masked().Addr() && !t.Address.IsSingleIP():
		return t, invalid("tap.address", fmt.Errorf("%s is not the address of a host", t.Address))
	case t.Gateway == a:
		return t, invalid("tap.gateway", fmt.Errorf("%s is tap.address too", t.Gateway))
	case !t.Address.Contains(t.Gateway) || !unicast(t.Gateway):
		return t, invalid("tap.gateway", fmt.Errorf("%s is not in the subnet of tap.address, %s", t.Gateway, t.Address.Masked()))
	}
	if in.MTU != 0 {
		t.MTU = in.MTU
	}
	if t.MTU < minMTU || t.MTU > maxMTU || a.Is6() && t.MTU < 1280 { // RFC 8200, section 5
		return t, invalid("tap.mtu", fmt.Errorf("%d: it is %d to %d, and for IPv6 at least 1280", t.MTU, minMTU, maxMTU))
	}
	if in.Name != "" {
		t.Name = in.Name
	}
	if !tapName.MatchString(t.Name) || t.Name == "lo" {
		return t, invalid("tap.name", fmt.Errorf("%q is not a name for a device: letters, digits, '.', '_' and '-', at most 15, not lo", api.Text(t.Name)))
	}
	return t, nil
}

// unicast says whether a host on a subnet may have the address. Loopback is not on a subnet.
func unicast(a netip.Addr) bool {
	return !a.Is4In6() && !a.IsMulticast() && !a.IsUnspecified() && !a.IsLoopback() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// checkAttempt wants what can be printed as it is.
func checkAttempt(s string) error {
	if len(s) > maxAttempt {
		return invalid("attempt", fmt.Errorf("it has %d characters; at most %d", len(s), maxAttempt))
	}
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' {
			return invalid("attempt", fmt.Errorf("%q is not printable ASCII", api.Text(s)))
		}
	}
	return nil
}

// attemptTaken finds the lease that an account planned with an attempt. h.mu is held.
func (h *Helper) attemptTaken(uid uint32, attempt string) error {
	if attempt == "" {
		return nil
	}
	for _, b := range h.boxes {
		if b.UID == uid && b.Attempt == attempt {
			return &api.AttemptTaken{Lease: b.ID, Attempt: attempt, Message: fmt.Sprintf("attempt %s of uid %d planned lease %s already", attempt, uid, b.ID),
				Next: "minhost ls; end that lease, or plan with another attempt"}
		}
	}
	return nil
}

// netPlanOf is DESIGN.md section 8's table.
func netPlanOf(l lease.Lease) api.NetPlan {
	switch l.Mode {
	case lease.ModeNone:
		return api.NetPlan{Isolate: true, Resolver: api.ResolverNone}
	case lease.ModeOwnIP:
		return api.NetPlan{Isolate: true, Resolver: api.ResolverNameservers, Nameservers: []string{l.Tap.Gateway.String()}, Tap: tapTo(l.Tap)}
	}
	return netPlan(l)
}

// inMode says of a box with a network namespace of its own what its policy does not.
func inMode(m lease.Mode, to netip.Addr, d lease.Decision) lease.Decision {
	switch {
	case m == lease.ModeNone && to.IsLoopback():
		return lease.Decision{Allowed: true, Reason: "it is the box's own localhost, in a network namespace of its own"}
	case m == lease.ModeNone:
		return lease.Decision{Reason: "the box has an empty network namespace of its own"}
	case m == lease.ModeOwnIP:
		d.Reason = "of its sockets in the host's network: " + d.Reason + "; what goes through its tap is for its runner's switch to decide"
	}
	return d
}

func tapTo(t lease.Tap) *api.Tap {
	return &api.Tap{Address: t.Address.String(), Gateway: t.Gateway.String(), MTU: t.MTU, Name: t.Name}
}

// isolated says whether the processes of a box of a mode have a network namespace of their own.
func isolated(m lease.Mode) bool { return m == lease.ModeNone || m == lease.ModeOwnIP }
