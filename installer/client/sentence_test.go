package client_test

import (
	"testing"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
)

func TestSentence(t *testing.T) {
	const subject = "the build of hello"
	for name, c := range map[string]struct {
		refusal api.Refusal
		want    string
	}{
		"an address": {
			api.Refusal{Kind: api.RefusalKindAddress, Box: "web", Protocol: "tcp", Destination: "192.0.2.7", Port: 443, Count: 1},
			"the build of hello could not reach 192.0.2.7:443: the egress rules of box web do not allow it"},
		"IPv6, UDP, often": {
			api.Refusal{Kind: api.RefusalKindAddress, Box: "web", Protocol: "udp", Destination: "2001:db8::1", Port: 53, Count: 7},
			"the build of hello could not reach [2001:db8::1]:53/udp: the egress rules of box web do not allow it (7 times)"},
		"ICMP": {
			api.Refusal{Kind: api.RefusalKindAddress, Box: "web", Protocol: "icmp", Destination: "192.0.2.7"},
			"the build of hello could not reach 192.0.2.7/icmp: the egress rules of box web do not allow it"},
		"an address with a name": {
			api.Refusal{Kind: api.RefusalKindAddress, Box: "web", Protocol: "tcp", Destination: "192.0.2.7", Port: 443, Name: "www.example.com"},
			"the build of hello could not reach www.example.com (192.0.2.7:443): the egress rules of box web do not allow it"},
		"a box without a name": {
			api.Refusal{Kind: api.RefusalKindAddress, Lease: "k3v9", Protocol: "tcp", Destination: "192.0.2.7", Port: 443},
			"the build of hello could not reach 192.0.2.7:443: the egress rules of box k3v9 do not allow it"},
		"a lookup": {
			api.Refusal{Kind: api.RefusalKindName, Box: "web", Name: "example.com"},
			"the build of hello could not look up example.com: box web may look up names of min.internal only"},
		"another box is never blamed on egress rules": {
			api.Refusal{Kind: api.RefusalKindZone, Box: "web", Protocol: "tcp", Destination: "127.0.64.2", Port: 3000, Name: "api.min.internal"},
			"box web may not reach box api: api's ingress"},
		"another box, fully qualified": {
			api.Refusal{Kind: api.RefusalKindZone, Box: "web", Name: "api.min.internal.", Count: 2},
			"box web may not reach box api: api's ingress (2 times)"},
		"another box without a name": {
			api.Refusal{Kind: api.RefusalKindZone, Box: "web", Protocol: "tcp", Destination: "127.0.64.2", Port: 3000},
			"box web may not reach the box at 127.0.64.2:3000: that box's ingress"},
		"hostile text": {
			api.Refusal{Kind: api.RefusalKindName, Box: "web", Name: "\x1b[2Jx"},
			`the build of hello could not look up \x1b[2Jx: box web may look up names of min.internal only`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := client.Sentence(c.refusal, subject); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
