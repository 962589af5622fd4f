package client

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/gominimal/minhost/installer/api"
)

// zone is what box names end in.
const zone = ".min.internal"

// Sentence says a refusal to people. subject is who was refused ("the build of hello"); of a
// refusal by another box's ingress the boxes are the subject, since no egress rule would help.
func Sentence(r api.Refusal, subject string) string {
	box := boxName(r)
	var s string
	switch r.Kind {
	case api.RefusalKindZone:
		s = fmt.Sprintf("%s may not reach %s", box, peerName(r))
	case api.RefusalKindName:
		s = fmt.Sprintf("%s could not look up %s: %s may look up names of min.internal only",
			api.Text(subject), api.Text(r.Name), box)
	default:
		s = fmt.Sprintf("%s could not reach %s: the egress rules of %s do not allow it",
			api.Text(subject), destination(r), box)
	}
	if r.Count > 1 {
		s += fmt.Sprintf(" (%d times)", r.Count)
	}
	return s
}

func boxName(r api.Refusal) string {
	if r.Box == "" {
		return "box " + api.Text(r.Lease)
	}
	return "box " + api.Text(r.Box)
}

// peerName names the refusing box and its ingress.
func peerName(r api.Refusal) string {
	name := strings.TrimSuffix(strings.TrimSuffix(r.Name, "."), zone)
	if name == "" {
		return "the box at " + address(r) + ": that box's ingress"
	}
	return fmt.Sprintf("box %s: %s's ingress", api.Text(name), api.Text(name))
}

// destination shows the address, and first the name that was looked up for it.
func destination(r api.Refusal) string {
	if r.Name == "" {
		return address(r)
	}
	return fmt.Sprintf("%s (%s)", api.Text(r.Name), address(r))
}

// address is 192.0.2.7:443, with the protocol when it is not TCP.
func address(r api.Refusal) string {
	s := api.Text(r.Destination)
	if r.Port != 0 {
		s = net.JoinHostPort(s, strconv.Itoa(r.Port))
	}
	if r.Protocol != "" && r.Protocol != string(api.ProtocolTCP) {
		s += "/" + api.Text(r.Protocol)
	}
	return s
}
