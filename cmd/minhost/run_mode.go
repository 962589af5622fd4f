package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/gominimal/minhost/installer/api"
)

// defaultTap is what user-mode networks give their one guest since slirp.
const defaultTap = "10.0.2.15/24,10.0.2.2"

// parseMode reads --mode.
func parseMode(s string) (api.Mode, error) {
	switch s {
	case "host":
		return api.ModeHost, nil
	case "none":
		return api.ModeNone, nil
	case "own-ip":
		return api.ModeOwnIP, nil
	}
	return "", fmt.Errorf("%s: not none, host or own-ip", api.Text(s))
}

// network makes the plan that of its mode. Flags that would say nothing in it are errors.
func (o *runOptions) network(plan *api.PlanIn, flags *pflag.FlagSet) error {
	switch plan.Mode {
	case api.ModeNone:
		return emptyNetwork(plan, flags)
	case api.ModeOwnIP:
		return o.ownNetwork(plan, flags)
	}
	return nil
}

// given names the first of these flags that was typed; "" for none.
func given(flags *pflag.FlagSet, names ...string) string {
	for _, name := range names {
		if flags.Changed(name) {
			return name
		}
	}
	return ""
}

// emptyNetwork is the policy of a box that is alone in its network. Rules for it would say nothing.
func emptyNetwork(plan *api.PlanIn, flags *pflag.FlagSet) error {
	if name := given(flags, "allow", "deny-subnet", "ingress", "ingress-box", "listen"); name != "" {
		return fmt.Errorf("--%s contradicts --mode none: there is nothing in the network of the box", name)
	}
	if flags.Changed("egress") && plan.Policy.Egress == api.EgressOpen {
		return errors.New("--egress open contradicts --mode none: leave one out")
	}
	plan.Policy.Egress = api.EgressDeny
	return nil
}

// ownNetwork is the tap of a box, and the policy of its sockets in the host's network, which the switch has.
func (o *runOptions) ownNetwork(plan *api.PlanIn, flags *pflag.FlagSet) error {
	if name := given(flags, "allow", "deny-subnet", "egress"); name != "" {
		return fmt.Errorf("--%s contradicts --mode own-ip: the switch decides what the box reaches", name)
	}
	address, gateway, ok := strings.Cut(o.tap, ",")
	if !ok {
		return fmt.Errorf("--tap %s: not ADDRESS/LENGTH,GATEWAY like %s", api.Text(o.tap), defaultTap)
	}
	plan.Tap = &api.Tap{Address: address, Gateway: gateway}
	plan.Policy.Egress = api.EgressDeny
	return nil
}

// switched is the way of a box that has a switch. It is strict or not at all: the gateway is its name server, and
// only a mount namespace gives it a resolv.conf that says so.
func (o *runOptions) switched(w *way) error {
	switch {
	case o.switchProgram == "":
		return errors.New("--mode own-ip needs --switch PROGRAM, which gets the tap of the box as descriptor 3 and moves its packets; --mode none is a network without any")
	case o.noStrict || !strictWorks:
		return errors.New("--mode own-ip needs the namespaces of a strict box: its name server is one of its own")
	case o.detach:
		return errors.New("--detach contradicts --switch: run ends it with the box, and would not be there")
	}
	w.strict, w.switchProgram = strictOnly, o.switchProgram
	return nil
}
