package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/gominimal/minhost/installer/api"
)

func TestParseAllow(t *testing.T) {
	for text, want := range map[string]api.Rule{
		"192.0.2.7":                      {To: "192.0.2.7", Protocol: "any"},
		"192.0.2.0/24":                   {To: "192.0.2.0/24", Protocol: "any"},
		"192.0.2.0/24/udp":               {To: "192.0.2.0/24", Protocol: "udp"},
		"192.0.2.7/icmp":                 {To: "192.0.2.7", Protocol: "icmp"},
		"127.0.0.1/32:8080/tcp":          {To: "127.0.0.1/32", Ports: "8080", Protocol: "tcp"},
		"127.0.0.1:8080":                 {To: "127.0.0.1", Ports: "8080", Protocol: "tcp"},
		"10.0.0.0/8:8000-8010/udp":       {To: "10.0.0.0/8", Ports: "8000-8010", Protocol: "udp"},
		"10.0.0.0/8/any":                 {To: "10.0.0.0/8", Protocol: "any"},
		"2001:db8::1":                    {To: "2001:db8::1", Protocol: "any"},
		"2001:db8::/32/tcp":              {To: "2001:db8::/32", Protocol: "tcp"},
		"[2001:db8::1]":                  {To: "2001:db8::1", Protocol: "any"},
		"[2001:db8::1]:443":              {To: "2001:db8::1", Ports: "443", Protocol: "tcp"},
		"[2001:db8::]/32:443/tcp":        {To: "2001:db8::/32", Ports: "443", Protocol: "tcp"},
		"[2001:db8::/32]:443-444/udp":    {To: "2001:db8::/32", Ports: "443-444", Protocol: "udp"},
		"box:api":                        {To: "box:api", Protocol: "any"},
		"box:api:3000":                   {To: "box:api", Ports: "3000", Protocol: "tcp"},
		"box:api.web:3000-3009/udp":      {To: "box:api.web", Ports: "3000-3009", Protocol: "udp"},
		"::1":                            {To: "::1", Protocol: "any"},
		"2001:db8::1:443":                {To: "2001:db8::1:443", Protocol: "any"}, // an address: no brackets
		"[::ffff:192.0.2.7]:1-65535/tcp": {To: "::ffff:192.0.2.7", Ports: "1-65535", Protocol: "tcp"},
	} {
		got, err := parseAllow(text)
		if err != nil || got != want {
			t.Errorf("parseAllow(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                   "not an address",
		"example.com:443":    "not an address",
		"box:api:":           "not a port",
		"192.0.2.7:":         "not a port",
		"192.0.2.7:0":        "not a port",
		"192.0.2.7:65536":    "not a port",
		"192.0.2.7:+1":       "not a port",
		"192.0.2.7:https":    "not a port",
		"192.0.2.7:1-":       "not a port",
		"192.0.2.7:-1":       "not a port",
		"192.0.2.7:9-8":      "ends before it begins",
		"192.0.2.7:80/icmp":  "ports need protocol tcp or udp",
		"192.0.2.7:80/any":   "ports need protocol tcp or udp",
		"192.0.2.7:80/TCP":   "not a port",
		"192.0.2.7/33":       "not an address",
		"192.0.2.7/sctp":     "not an address",
		"[2001:db8::1":       "not an address",
		"[2001:db8::1]443":   "not an address",
		"[2001:db8::1]:":     "not a port",
		"fe80::1%eth0":       "not an address",
		"192.0.2.7:80:81":    "not an address",
		"\x1b[2J192.0.2.7:1": `\x1b[2J`,
	} {
		if got, err := parseAllow(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parseAllow(%q) = %+v, %v; want an error with %q", text, got, err, want)
		}
	}
}

func TestRunFlags(t *testing.T) {
	const host = api.IngressHost
	rule := []api.Rule{{To: "192.0.2.7", Ports: "443", Protocol: "tcp"}}
	for name, c := range map[string]struct {
		args   []string
		policy api.Policy
		err    string
	}{
		"nothing":          {nil, api.Policy{Egress: "open", Ingress: host}, ""},
		"deny":             {[]string{"--egress", "deny"}, api.Policy{Egress: "deny", Ingress: host}, ""},
		"allow":            {[]string{"--allow", "192.0.2.7:443"}, api.Policy{Egress: "rules", Rules: rule, Ingress: host}, ""},
		"deny and allow":   {[]string{"--egress=deny", "--allow", "192.0.2.7:443"}, api.Policy{Egress: "rules", Rules: rule, Ingress: host}, ""},
		"open and allow":   {[]string{"--egress=open", "--allow", "192.0.2.7:443"}, api.Policy{}, "--egress open contradicts --allow"},
		"unknown egress":   {[]string{"--egress", "rules"}, api.Policy{}, "--egress rules: not deny or open"},
		"a bad rule":       {[]string{"--allow", "x"}, api.Policy{}, "--allow x: "},
		"deny subnets":     {[]string{"--deny-subnet", "10.0.0.0/8", "--deny-subnet", "fe80::/10"}, api.Policy{Egress: "open", DenySubnets: []string{"10.0.0.0/8", "fe80::/10"}, Ingress: host}, ""},
		"a bad subnet":     {[]string{"--deny-subnet", "10.0.0.0/8:1"}, api.Policy{}, "--deny-subnet 10.0.0.0/8:1: "},
		"ingress any":      {[]string{"--ingress", "any"}, api.Policy{Egress: "open", Ingress: "any"}, ""},
		"ingress boxes":    {[]string{"--ingress-box", "a", "--ingress-box", "*"}, api.Policy{Egress: "open", Ingress: "host", IngressBoxes: []string{"a", "*"}}, ""},
		"ingress nobody":   {[]string{"--ingress-box", "a", "--ingress", "none"}, api.Policy{}, "--ingress none contradicts --ingress-box"},
		"ingress none":     {[]string{"--ingress", "none"}, api.Policy{Egress: "open", Ingress: "none"}, ""},
		"ingress ports":    {[]string{"--ingress", "80,443"}, api.Policy{Egress: "open", Ingress: "ports", IngressPorts: []int{80, 443}}, ""},
		"ingress word":     {[]string{"--ingress", "ports"}, api.Policy{}, "--ingress ports: not host, any, none or ports"},
		"ingress no port":  {[]string{"--ingress", "80,"}, api.Policy{}, "--ingress 80,: "},
		"ingress nothing":  {[]string{"--ingress", ""}, api.Policy{}, "--ingress : "},
		"an empty allow":   {[]string{"--allow", ""}, api.Policy{}, "--allow : "},
		"a comma is no or": {[]string{"--allow", "192.0.2.7,192.0.2.8"}, api.Policy{}, "not an address"},
	} {
		t.Run(name, func(t *testing.T) {
			var f runFlags
			set := pflag.NewFlagSet("run", pflag.ContinueOnError)
			f.register(set)
			if err := set.Parse(c.args); err != nil {
				t.Fatal(err)
			}
			in, err := f.plan(set.Changed("egress"))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want an error with %q", err, c.err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(in.Policy, c.policy) {
				t.Errorf("got %+v, %v; want %+v", in.Policy, err, c.policy)
			}
			if in.Mode != api.ModeHost || !in.EndWithConnection || in.AllowUnenforced {
				t.Errorf("plan %+v", in)
			}
		})
	}
}
