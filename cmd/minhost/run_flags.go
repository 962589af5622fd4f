package main

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/gominimal/minhost/installer/api"
)

// runFlags are the flags of run as they were typed.
type runFlags struct {
	name, egress, ingress string
	allow, denySubnets    []string
	ingressBoxes          []string
	unenforced            bool
	sharedLocalhost       bool
}

func (f *runFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.name, "name", "", "name of the box: NAME.min.internal, with an address of its own")
	flags.StringVar(&f.egress, "egress", string(api.EgressOpen), "deny: reach nothing; open: reach everything")
	flags.StringArrayVar(&f.allow, "allow", nil,
		"reach only this, and other --allow: CIDR[:PORT[-PORT]][/tcp|udp|icmp|any][@10m]; IPv6 with ports\n"+
			"in brackets, [2001:db8::1]:443; tcp when only ports are given, any when nothing is;\n"+
			"box:NAME instead of CIDR: another box, which has to let this one in (--ingress-box);\n"+
			"@10m or @2026-01-02T15:04:05Z: until then")
	flags.StringArrayVar(&f.denySubnets, "deny-subnet", nil, "never reach this CIDR, whatever else is allowed")
	flags.StringVar(&f.ingress, "ingress", string(api.IngressHost),
		"who reaches its listeners: host, any, none, or ports for other hosts (PORT,...)")
	flags.StringArrayVar(&f.ingressBoxes, "ingress-box", nil,
		"let in this box, if its own rules allow it; * for every box")
	flags.BoolVar(&f.sharedLocalhost, "shared-localhost", false,
		"localhost is the host's: the box has none of its own")
	flags.BoolVar(&f.unenforced, "allow-unenforced", false, "run even where this host cannot confine the box")
}

// plan turns the flags into the call of Plan. egressGiven says whether --egress was typed.
func (f *runFlags) plan(egressGiven bool) (api.PlanIn, error) {
	in := api.PlanIn{Name: f.name, Mode: api.ModeHost, EndWithConnection: true, AllowUnenforced: f.unenforced}
	if f.sharedLocalhost {
		in.Localhost = api.LocalhostShared
	}
	p := &in.Policy
	switch p.Egress = api.Egress(f.egress); {
	case p.Egress != api.EgressDeny && p.Egress != api.EgressOpen:
		return in, fmt.Errorf("--egress %s: not deny or open", api.Text(f.egress))
	case len(f.allow) > 0 && egressGiven && p.Egress == api.EgressOpen:
		return in, fmt.Errorf("--egress open contradicts --allow: leave one out")
	case len(f.allow) > 0:
		p.Egress = api.EgressRules
	}
	for _, text := range f.allow {
		rule, err := parseAllow(text)
		if err != nil {
			return in, fmt.Errorf("--allow %s: %w", api.Text(text), err)
		}
		p.Rules = append(p.Rules, rule)
	}
	for _, text := range f.denySubnets {
		if err := checkSubnet(text); err != nil {
			return in, fmt.Errorf("--deny-subnet %s: %w", api.Text(text), err)
		}
		p.DenySubnets = append(p.DenySubnets, text)
	}
	var err error
	if p.Ingress, p.IngressPorts, err = parseIngress(f.ingress); err != nil {
		return in, fmt.Errorf("--ingress %s: %w", api.Text(f.ingress), err)
	}
	if len(f.ingressBoxes) > 0 && p.Ingress == api.IngressNone {
		return in, fmt.Errorf("--ingress none contradicts --ingress-box: leave one out")
	}
	p.IngressBoxes = f.ingressBoxes
	return in, nil
}

// parseAllow reads one --allow: an address, a CIDR or box:NAME, then :PORT or :PORT-PORT, then /PROTOCOL, then
// @END.
// An IPv6 address with ports needs brackets; the length of the prefix may stand in or behind them.
func parseAllow(text string) (api.Rule, error) {
	rule := api.Rule{}
	rest, err := cutTerm(text, &rule)
	if err != nil {
		return rule, err
	}
	if i := strings.LastIndexByte(rest, '/'); i >= 0 && isProtocol(rest[i+1:]) {
		rest, rule.Protocol = rest[:i], api.Protocol(rest[i+1:])
	}
	var havePorts bool
	if name, ok := strings.CutPrefix(rest, "box:"); ok {
		// The helper checks the name.
		name, rule.Ports, havePorts = strings.Cut(name, ":")
		rule.To = "box:" + name
	} else {
		rule.To, rule.Ports, havePorts = splitPorts(rest)
		if err := checkSubnet(rule.To); err != nil {
			return rule, err
		}
	}
	if havePorts {
		if err := checkPorts(rule.Ports); err != nil {
			return rule, err
		}
	}
	switch {
	case havePorts && (rule.Protocol == api.ProtocolICMP || rule.Protocol == api.ProtocolAny):
		return rule, fmt.Errorf("ports need protocol tcp or udp, not %s", rule.Protocol)
	case havePorts && rule.Protocol == "":
		rule.Protocol = api.ProtocolTCP
	case rule.Protocol == "":
		rule.Protocol = api.ProtocolAny
	}
	return rule, nil
}

func isProtocol(word string) bool {
	switch api.Protocol(word) {
	case api.ProtocolTCP, api.ProtocolUDP, api.ProtocolICMP, api.ProtocolAny:
		return true
	}
	return false
}

// splitPorts takes the ports off: what follows the only colon, or a colon behind the brackets.
// More colons without brackets are those of an IPv6 address.
func splitPorts(s string) (to, ports string, have bool) {
	if inner, behind, ok := strings.Cut(s, "]"); ok && strings.HasPrefix(inner, "[") {
		length, ports, have := strings.Cut(behind, ":")
		if length != "" && length[0] != '/' {
			return s, "", false // no address: what follows the bracket is neither length nor ports
		}
		return inner[1:] + length, ports, have
	}
	if strings.Count(s, ":") == 1 {
		return strings.Cut(s, ":")
	}
	return s, "", false
}

func checkSubnet(s string) error {
	if p, err := netip.ParsePrefix(s); err == nil {
		if p.Addr().Zone() == "" {
			return nil
		}
	} else if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		return nil
	}
	return fmt.Errorf("%q is not an address or a CIDR like 192.0.2.7, 192.0.2.0/24 or [2001:db8::]/32", api.Text(s))
}

// checkPorts checks PORT or PORT-PORT.
func checkPorts(s string) error {
	first, last, isRange := strings.Cut(s, "-")
	from, err := parsePort(first)
	if err != nil || !isRange {
		return err
	}
	to, err := parsePort(last)
	if err == nil && to < from {
		err = fmt.Errorf("the range %s ends before it begins", s)
	}
	return err
}

func parsePort(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not a port from 1 to 65535", api.Text(s))
	}
	return int(n), nil
}

func parseIngress(s string) (api.Ingress, []int, error) {
	switch word := api.Ingress(s); word {
	case api.IngressHost, api.IngressAny, api.IngressNone:
		return word, nil, nil
	}
	var ports []int
	for part := range strings.SplitSeq(s, ",") {
		port, err := parsePort(part)
		if err != nil {
			return "", nil, fmt.Errorf("not host, any, none or ports: %w", err)
		}
		ports = append(ports, port)
	}
	return api.IngressPorts, ports, nil
}
