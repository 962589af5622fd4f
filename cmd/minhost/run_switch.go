//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/gominimal/minhost/installer/api"
)

// switchTime is how long a switch may take to end when it was asked to.
const switchTime = 2 * time.Second

// tapFD is the descriptor of the tap in the switch, those of its sockets follow.
const tapFD = 3

// networkSwitch is the program that moves the packets of a box with a network of its own. It is no part of the box:
// it has the network and the rights of who called run.
type networkSwitch struct {
	cmd  *exec.Cmd
	over chan struct{} // closed when it has ended
}

// startSwitch gives the tap, and the sockets of the box, to the switch. What it prints goes to standard error: it
// is not the program's.
func (s *session) startSwitch() error {
	if s.tap == nil {
		return hinted{fmt.Errorf("run: the helper made no tap for %s", s.box()), "minhost status"}
	}
	cmd := &exec.Cmd{Path: s.way.switchProgram, Args: []string{s.way.switchProgram}}
	cmd.ExtraFiles = append([]*os.File{s.tap}, s.given...)
	cmd.Env = switchEnvironment(os.Environ(), s.plan, s.way.listen)
	cmd.Stdout, cmd.Stderr = fileOf(s.env.Stderr), fileOf(s.env.Stderr)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what is typed at the terminal is for the program
	err := cmd.Start()
	s.tap.Close()
	if err != nil {
		return exitError{statusNotExecutable, fmt.Errorf("run: the switch: %w", err)}
	}
	s.networkSwitch = &networkSwitch{cmd, make(chan struct{})}
	go s.watchSwitch()
	return nil
}

// watchSwitch says so when a switch ends before its box: that has no network any more.
func (s *session) watchSwitch() {
	err := s.networkSwitch.cmd.Wait()
	close(s.networkSwitch.over)
	select {
	case <-s.child.Done():
	case <-time.After(switchTime): // it may have seen the end of the box first
		s.tell("the switch of %s has ended (%s): the box reaches nothing any more", s.box(), endOf(err))
	}
}

func endOf(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return api.Text(err.Error())
}

// stop ends the switch of a box that has ended. A nil switch is none.
func (n *networkSwitch) stop() {
	if n == nil {
		return
	}
	_ = n.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-n.over:
	case <-time.After(switchTime):
		_ = n.cmd.Process.Kill()
		<-n.over
	}
}

// switchEnvironment is the caller's environment with what the switch has to know.
func switchEnvironment(environ []string, plan api.PlanOut, listen []api.ListenIn) []string {
	env := withoutBox(environ)
	set := func(name string, value any) { env = append(env, fmt.Sprintf("%s%s=%v", boxVariables, name, value)) }
	set("NAME", plan.Name)
	set("ADDRESS", plan.Address)
	set("TAP_FD", tapFD)
	if t := plan.Net.Tap; t != nil {
		set("TAP_ADDRESS", t.Address)
		set("TAP_GATEWAY", t.Gateway)
		set("TAP_MTU", t.MTU)
	}
	var sockets []string
	for i, in := range listen {
		sockets = append(sockets, fmt.Sprintf("%d/%s/%d", tapFD+1+i, in.Protocol, in.Port))
	}
	set("LISTEN", strings.Join(sockets, " "))
	return env
}
