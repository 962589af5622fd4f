package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/gominimal/minhost/installer/api"
)

// runOptions are the flags of run that say how the program is run, as they were typed; runFlags say
// what it may reach.
type runOptions struct {
	strict, noStrict, tty, detach bool
	mode, join, kind              string
	switchProgram, tap            string
	listen                        []string
}

// strictness says what happens where a box cannot be strict.
type strictness int

const (
	strictNever  strictness = iota
	strictWanted            // else it is cooperative, and run says so
	strictOnly              // else the program does not run
)

// way is how a program is run.
type way struct {
	strict strictness
	// terminal: always, never, or nil: where the caller is at one.
	terminal *bool
	detach   bool
	join     string // a box; empty: a box of its own
	kind     api.JoinKind
	listen   []api.ListenIn // protocol and port
	// switchProgram is the path of the program that has the box's tap, and the sockets of listen; "" for none.
	switchProgram string
}

// boundary is what is declared of a program that is run this way.
func (w way) boundary() api.Boundary {
	if w.strict == strictNever {
		return "" // which means cooperative, to helpers that do not know the word too
	}
	return api.BoundaryStrict
}

func (o *runOptions) register(flags *pflag.FlagSet) {
	flags.BoolVar(&o.strict, "strict", false, "hide from the program what could act for it, or do not run it; the default of\na confined box is to do so where this host can: minhost-runner(7)")
	flags.BoolVar(&o.noStrict, "no-strict", false, "hide nothing: what the program gets others to do is not confined")
	flags.BoolVarP(&o.tty, "tty", "t", false, "give the program a terminal of its own; the default at a terminal in a strict box")
	flags.BoolVarP(&o.detach, "detach", "d", false, "print the name of the box and return; minhost stop ends it")
	flags.StringVar(&o.mode, "mode", string(api.ModeHost), "none: a network namespace of its own, with nothing in it; host: the host's network;\nown-ip: a namespace with a tap, whose packets --switch moves")
	flags.StringVar(&o.switchProgram, "switch", "", "with --mode own-ip, the program that moves the packets: it has the tap as descriptor 3")
	flags.StringVar(&o.tap, "tap", defaultTap, "with --mode own-ip, ADDRESS/LENGTH,GATEWAY of the box")
	flags.StringVar(&o.join, "join", "", "run in this box, a name or a lease id, which minhost run of the same account started")
	flags.StringVar(&o.kind, "kind", string(api.JoinKindExec), "with --join, what the program is for: build, task, exec, check or other")
	flags.StringArrayVar(&o.listen, "listen", nil, "PORT[/udp]: give the program a socket on the box's address, as systemd would (LISTEN_FDS)")
}

// joinFlags are those that make sense when another run made the box.
var joinFlags = map[string]bool{
	"join": true, "kind": true, "strict": true, "no-strict": true, "tty": true, "listen": true, "socket": true,
}

// way checks the flags against each other. confined says whether the box is.
func (o *runOptions) way(flags *pflag.FlagSet, confined bool) (way, error) {
	w := way{detach: o.detach, join: o.join, kind: api.JoinKind(o.kind)}
	var err error
	switch {
	case o.strict && o.noStrict:
		return w, errors.New("--strict contradicts --no-strict: leave one out")
	case o.strict && !strictWorks:
		return w, errors.New("--strict: there are no namespaces on this system")
	case o.strict:
		w.strict = strictOnly
	case !o.noStrict && strictWorks && (confined || o.join != ""):
		w.strict = strictWanted
	}
	if flags.Changed("tty") {
		w.terminal = &o.tty
		if o.tty && !strictWorks {
			return w, errors.New("--tty: run gives no terminal of its own on this system")
		}
	}
	if o.detach {
		switch {
		case o.join != "":
			return w, errors.New("--detach contradicts --join: the box ends with the program that made it")
		case o.tty:
			return w, errors.New("--detach contradicts --tty: nobody would be at that terminal")
		}
	}
	if err := o.checkJoin(flags); err != nil {
		return w, err
	}
	if name := given(flags, "switch", "tap"); name != "" && o.mode != "own-ip" {
		return w, fmt.Errorf("--%s is for --mode own-ip", name)
	}
	for _, text := range o.listen {
		in, err := parseListen(text)
		if err != nil {
			return w, fmt.Errorf("--listen %s: %w", api.Text(text), err)
		}
		w.listen = append(w.listen, in)
	}
	return w, err
}

func (o *runOptions) checkJoin(flags *pflag.FlagSet) (err error) {
	switch api.JoinKind(o.kind) {
	case api.JoinKindBuild, api.JoinKindTask, api.JoinKindExec, api.JoinKindCheck, api.JoinKindOther:
	default:
		return fmt.Errorf("--kind %s: not build, task, exec, check or other", api.Text(o.kind))
	}
	if o.join == "" {
		if flags.Changed("kind") {
			return errors.New("--kind is for --join: name the box")
		}
		return nil
	}
	flags.Visit(func(f *pflag.Flag) {
		if err == nil && !joinFlags[f.Name] {
			err = fmt.Errorf("--%s contradicts --join: the box has its rules; minhost explain shows them", f.Name)
		}
	})
	return err
}

// parseListen reads PORT, PORT/tcp or PORT/udp.
func parseListen(text string) (in api.ListenIn, err error) {
	port, protocol, given := strings.Cut(text, "/")
	switch in.Protocol = api.Protocol(protocol); {
	case !given:
		in.Protocol = api.ProtocolTCP
	case in.Protocol != api.ProtocolTCP && in.Protocol != api.ProtocolUDP:
		return in, fmt.Errorf("%q is not tcp or udp", api.Text(protocol))
	}
	in.Port, err = parsePort(port)
	return in, err
}
