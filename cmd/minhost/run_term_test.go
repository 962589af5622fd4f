package main

import (
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/api"
)

func TestParseAllowWithEnd(t *testing.T) {
	for text, want := range map[string]api.Rule{
		"192.0.2.7@10m":                                 {To: "192.0.2.7", Protocol: "any", Seconds: 600},
		"192.0.2.7:443/tcp@1h30m":                       {To: "192.0.2.7", Ports: "443", Protocol: "tcp", Seconds: 5400},
		"[2001:db8::/32]:443@90s":                       {To: "2001:db8::/32", Ports: "443", Protocol: "tcp", Seconds: 90},
		"box:api:3000@2026-12-01T08:00:00+01:00":        {To: "box:api", Ports: "3000", Protocol: "tcp", Until: "2026-12-01T08:00:00+01:00"},
		"10.0.0.0/8/udp@2026-12-01T08:00:00Z":           {To: "10.0.0.0/8", Protocol: "udp", Until: "2026-12-01T08:00:00Z"},
		"192.0.2.7/32:443/tcp@2026-11-30T20:16:51.664Z": {To: "192.0.2.7/32", Ports: "443", Protocol: "tcp", Until: "2026-11-30T20:16:51.664Z"}, // as Explain prints it
	} {
		if got, err := parseAllow(text); err != nil || got != want {
			t.Errorf("parseAllow(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"192.0.2.7@", "192.0.2.7@10", "192.0.2.7@-1m", "192.0.2.7@0s", "192.0.2.7@1500ms", "192.0.2.7@noon", "192.0.2.7@1m@2m", "@10m"} {
		if got, err := parseAllow(text); err == nil || !strings.Contains(err.Error(), "neither") && text != "@10m" {
			t.Errorf("parseAllow(%q) = %+v, %v; want an error", text, got, err)
		}
	}
}
