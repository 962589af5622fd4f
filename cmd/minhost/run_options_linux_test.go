package main

import (
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/gominimal/minhost/installer/api"
)

// parsed runs flags through what run does with them.
func parsed(t *testing.T, args ...string) (api.PlanIn, way, error) {
	t.Helper()
	var f runFlags
	var o runOptions
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	f.register(flags)
	o.register(flags)
	if err := flags.Parse(args); err != nil {
		return api.PlanIn{}, way{}, err
	}
	return parseRun(flags, &f, &o)
}

func TestHowAProgramIsRun(t *testing.T) {
	yes, no := true, false
	exec := api.JoinKindExec
	for args, want := range map[string]way{
		"":                              {kind: exec},
		"--egress deny":                 {strict: strictWanted, kind: exec},
		"--allow 192.0.2.1":             {strict: strictWanted, kind: exec},
		"--deny-subnet 10.0.0.0/8":      {strict: strictWanted, kind: exec},
		"--mode none":                   {strict: strictWanted, kind: exec},
		"--egress deny --no-strict":     {kind: exec},
		"--mode own-ip --switch s":      {strict: strictOnly, switchProgram: "s", kind: exec},
		"--strict":                      {strict: strictOnly, kind: exec},
		"--tty":                         {terminal: &yes, kind: exec},
		"--tty=false --strict":          {strict: strictOnly, terminal: &no, kind: exec},
		"-d":                            {detach: true, kind: exec},
		"--join web --kind build":       {strict: strictWanted, join: "web", kind: api.JoinKindBuild},
		"--join web --no-strict -t":     {join: "web", kind: exec, terminal: &yes},
		"--listen 80 --listen 5353/udp": {kind: exec, listen: []api.ListenIn{{Protocol: "tcp", Port: 80}, {Protocol: "udp", Port: 5353}}},
		"--listen 80/tcp --egress open --tty=false": {kind: exec, terminal: &no, listen: []api.ListenIn{{Protocol: "tcp", Port: 80}}},
	} {
		plan, got, err := parsed(t, strings.Fields(args)...)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", args, got, err, want)
		}
		if plan.EndWithConnection == want.detach {
			t.Errorf("%s: end_with_connection %v", args, plan.EndWithConnection)
		}
	}
	own, _, err := parsed(t, "--mode", "own-ip", "--switch", "s", "--tap", "10.9.8.7/24,10.9.8.1")
	if err != nil || own.Tap == nil || *own.Tap != (api.Tap{Address: "10.9.8.7/24", Gateway: "10.9.8.1"}) || own.Policy.Egress != api.EgressDeny || own.Boundary != api.BoundaryStrict {
		t.Errorf("mode own-ip: %+v, %v", own, err)
	}
	if plan, _, err := parsed(t, "--mode", "none"); err != nil || plan.Mode != api.ModeNone || plan.Policy.Egress != api.EgressDeny {
		t.Errorf("mode none: %+v, %v", plan, err)
	}
}

func TestContradictions(t *testing.T) {
	for args, want := range map[string]string{
		"--strict --no-strict":                    "--strict contradicts --no-strict",
		"--detach --tty":                          "--detach contradicts --tty",
		"--detach --join web":                     "--detach contradicts --join",
		"--join web --egress deny":                "--egress contradicts --join",
		"--join web --name api":                   "--name contradicts --join",
		"--join web --mode none":                  "--mode contradicts --join",
		"--kind build":                            "--kind is for --join",
		"--join web --kind party":                 "not build, task, exec, check or other",
		"--mode own-ip":                           "--mode own-ip needs --switch PROGRAM",
		"--mode own-ip --switch s -d":             "--detach contradicts --switch",
		"--mode own-ip --switch s --no-strict":    "needs the namespaces of a strict box",
		"--mode own-ip --switch s --egress open":  "--egress contradicts --mode own-ip",
		"--mode own-ip --switch s --allow ::1":    "--allow contradicts --mode own-ip",
		"--mode own-ip --switch s --tap 10.0.2.1": "not ADDRESS/LENGTH,GATEWAY",
		"--switch s":                              "--switch is for --mode own-ip",
		"--mode none --tap 10.0.2.15/24,10.0.2.2": "--tap is for --mode own-ip",
		"--join web --switch s":                   "--switch contradicts --join",
		"--mode bridge":                           "not none, host or own-ip",
		"--mode none --egress open":               "--egress open contradicts --mode none",
		"--mode none --listen 80":                 "--listen contradicts --mode none",
		"--mode none --allow ::1":                 "--allow contradicts --mode none",
		"--mode none --ingress any":               "--ingress contradicts --mode none",
		"--listen 0":                              "not a port from 1 to 65535",
		"--listen 80/sctp":                        "not tcp or udp",
		"--listen 80/":                            "not tcp or udp",
		"--listen http":                           "not a port from 1 to 65535",
		"--mode none --deny-subnet ::":            "--deny-subnet contradicts --mode none",
	} {
		if _, _, err := parsed(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
