package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/filestep"
	"github.com/gominimal/minhost/installer/operators"
	"github.com/gominimal/minhost/linux"
	"github.com/gominimal/minhost/linux/apparmor"
	"github.com/gominimal/minhost/linux/initscript"
	"github.com/gominimal/minhost/linux/label"
	"github.com/gominimal/minhost/linux/resolved"
	"github.com/gominimal/minhost/linux/standalone"
	"github.com/gominimal/minhost/linux/systemd"
	"github.com/gominimal/minhost/resolverd/probe"
)

func serviceManager() systemd.Manager { return systemd.Detect(systemd.HostEnv()) }

// treeRel is the tree's place below the cgroup2 mount: a unit's own cgroup, or one of ours.
func treeRel(m systemd.Manager) string {
	if m.Kind == systemd.Systemd {
		return "system.slice/" + systemd.TreeService
	}
	return "minhost"
}

// steps are the steps of this host in the order of apply. Belt before table: undone in the reverse
// order, so that no rule approves without a belt that asks for it.
func steps(env *environment, l linux.Layout, disk *host.Disk, gate host.Gate) ([]installer.Step, error) {
	manager := serviceManager()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return nil, fmt.Errorf("read this program: %w", err)
	}
	config, err := readConfig(l)
	if err != nil {
		return nil, err
	}
	ground := linux.Ground{Rel: treeRel(manager), Marks: config.Marks, Planes: config.Planes, Gate: gate, Log: env.Log, Lacking: lacking()}
	all := []installer.Step{
		filestep.New(disk, filestep.Spec{
			ID: "program", Describe: "copy this program to " + l.Program + " (root-owned: root runs nothing that others can write)",
			Loses: "nothing of minhost runs as root", Path: l.Program, Content: self, Attr: host.Attr{Mode: 0o755},
			Ours: isProgram, KeepNothing: true,
		}),
		operators.Step{FS: disk, Path: l.Operators, UID: env.For.UID, Name: env.For.Name},
		linux.RangeStep{Guarded: ground.Guarded},
	}
	if manager.Kind == systemd.Systemd {
		more, err := systemdSteps(env, l, disk, gate, manager, ground)
		return append(all, more...), err
	}
	boot, err := bootStep(l, disk, gate, manager)
	return append(all, standaloneSteps(env, l, disk, gate, boot, ground)...), err
}

// bootStep brings everything back at boot where the init takes a script of ours, and else says that nothing does.
func bootStep(l linux.Layout, disk *host.Disk, gate host.Gate, m systemd.Manager) (installer.Step, error) {
	s, ok, err := initscript.New(disk, host.Exec{Gate: gate}, systemd.HostEnv(), m.Kind, l.Program)
	if !ok {
		return &standalone.BootStep{Reason: m.Reason}, err
	}
	return s, err
}

// standaloneSteps are those of a host without systemd.
func standaloneSteps(env *environment, l linux.Layout, disk *host.Disk, gate host.Gate, boot installer.Step, ground linux.Ground) []installer.Step {
	return []installer.Step{
		linux.TreeStep{Ground: ground},
		linux.BeltStep{Ground: ground},
		linux.LocalhostStep{Ground: ground},
		linux.TableStep{Ground: ground, Repair: env.repairTable},
		&standalone.ServicesStep{Config: standaloneConfig(l), Gate: gate, Helper: env.askHelper, Answerer: askAnswerer,
			Clean: func() error { return cleanRun(l, disk) }},
		boot,
		namesStep(gate),
	}
}

// systemdSteps: the units come first, since the tree is the cgroup of one of them.
func systemdSteps(env *environment, l linux.Layout, disk *host.Disk, gate host.Gate, m systemd.Manager, ground linux.Ground) ([]installer.Step, error) {
	units, err := systemd.Units(systemd.DefaultParams(l.Program, l.Socket))
	if err != nil {
		return nil, err
	}
	table := linux.TableStep{Ground: ground, Repair: env.repairTable}
	// Belt and table are made by the tree's unit, so their own steps find nothing to do and nothing to
	// undo. The belt goes with the tree; of the localhosts one part is attached above it.
	clean := func(ctx context.Context) error {
		return errors.Join(table.Undo(ctx, installer.Record{}), linux.LocalhostStep{Ground: ground}.Undo(ctx, installer.Record{}), cleanRun(l, disk))
	}
	ctl := systemd.Systemctl{Run: host.Exec{Gate: gate}, Path: systemd.Find(systemd.HostEnv(), "systemctl")}
	all := []installer.Step{
		apparmor.New(disk, host.Exec{Gate: gate}, systemd.Find(systemd.HostEnv(), "apparmor_parser"), l.Program, tryNamespaces(env, l)),
		&systemd.UnitsStep{Units: units, FS: disk, Manager: m, Systemctl: ctl, Clean: clean},
		label.Step{Env: systemd.HostEnv(), Run: host.Exec{Gate: gate}, Paths: labelled(l.Program, units)},
		linux.TreeStep{Ground: ground, Unit: func(ctx context.Context) error { return ctl.Start(ctx, systemd.TreeService) }},
		linux.BeltStep{Ground: ground},
		linux.LocalhostStep{Ground: ground},
		table,
		&systemd.ServicesStep{Program: l.Program, Systemctl: ctl, Helper: env.askHelper, Answerer: askAnswerer},
	}
	for _, s := range resolved.UnmanagedSteps(disk, resolved.SystemBus(), resolved.DefaultParams().Link) {
		all = append(all, s)
	}
	all = append(all, resolved.NewDelegateStep(disk, resolved.SystemBus(), resolved.DefaultParams()))
	names := namesStep(gate)
	names.Keeper = systemd.Service{Systemctl: ctl, Name: systemd.NamesService}
	return append(all, names), nil
}

// tryNamespaces tries by the installed program, which AppArmor knows by its path, and before there is one by this.
func tryNamespaces(env *environment, l linux.Layout) func(context.Context) error {
	return func(ctx context.Context) error {
		program := l.Program
		if _, err := os.Stat(program); err != nil {
			program = ""
		}
		return apparmor.Try(ctx, program, uint32(env.For.UID))
	}
}

// labelled are the files that systemd reads and executes, and the folder of the program.
func labelled(program string, units []systemd.Unit) []string {
	paths := []string{filepath.Dir(program), program}
	for _, u := range units {
		paths = append(paths, u.Path)
	}
	return paths
}

// readConfig reads what the admin changed.
func readConfig(l linux.Layout) (linux.Config, error) {
	c, err := linux.ReadConfig(l.Config)
	if err != nil {
		return c, hinted{err, "correct " + l.Config + " or remove it"}
	}
	return c, nil
}

func standaloneConfig(l linux.Layout) standalone.Config {
	c := standalone.DefaultConfig(l.Program, l.Run, l.Socket, l.SuperPID, l.Log)
	if t, err := (linux.Ground{Rel: "minhost"}).Tree(); err == nil {
		c.Holder = t.Path() + "/holder"
		t.Close()
	}
	return c
}

// isProgram tells an older minhost from a stranger's file of the same name.
func isProgram(content []byte) bool { return containsModule(content) }

func askAnswerer(ctx context.Context) error {
	_, err := probe.Check(ctx, "127.0.0.1:15353")
	return err
}

func (env *environment) askHelper(ctx context.Context) error {
	c, err := env.Dial(ctx, env.Socket)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Status(ctx)
	return err
}

// repairTable lets a running helper write the table: it is the only writer while it runs.
func (env *environment) repairTable(ctx context.Context) (running bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c, err := env.Dial(ctx, env.Socket)
	if err != nil {
		return false, nil
	}
	defer c.Close()
	_, err = c.Repair(ctx)
	var refused api.Error
	if err != nil && !errors.As(err, &refused) {
		return false, nil // a socket without a helper behind it
	}
	return true, err
}
