//go:build darwin || fakedarwin

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"github.com/gominimal/minhost/darwin/procs"
	"github.com/gominimal/minhost/installer/helper"
)

// macProcesses opens processes by pid and start time.
type macProcesses struct {
	table procs.Table
	pidOf func(*os.File) (int, error)
}

func (p macProcesses) Open(pid int) (helper.Process, error) {
	i, err := p.table.Info(pid)
	if err != nil {
		return nil, err
	}
	return macProcess{p.table, i}, nil
}

func (p macProcesses) FromFD(f *os.File) (helper.Process, error) {
	if p.pidOf == nil {
		return nil, errors.New("macOS has no descriptors of processes: give the pid")
	}
	pid, err := p.pidOf(f)
	if err != nil {
		return nil, err
	}
	return p.Open(pid)
}

// macProcess is one of them.
type macProcess struct {
	table procs.Table
	procs.Info
}

func (p macProcess) PID() int { return p.Info.PID }

// Alive implements helper.Process; in doubt it is dead.
func (p macProcess) Alive() bool {
	same, err := procs.Same(p.table, p.Info.PID, p.Start)
	return same && err == nil
}

// Fit implements helper.Process. Sockets and children do not count here: no verdict hangs on them.
func (p macProcess) Fit(uid uint32, anyUID bool) error {
	i, err := p.table.Info(p.Info.PID)
	if err != nil {
		return err
	}
	if !anyUID && i.UIDs != [3]uint32{uid, uid, uid} {
		return &helper.Unfit{Reason: "uid", Text: fmt.Sprintf("its user ids are not all %d", uid)}
	}
	return nil
}

func (macProcess) Childless() (bool, error) { return true, nil }
func (macProcess) Children() ([]int, error) { return nil, nil }
func (macProcess) Close() error             { return nil }

// Pin has nothing to hold: the start time, read again, tells a number that another process has.
func (macProcess) Pin() (func(), error) { return func() {}, nil }

func (p macProcess) Kill() error {
	if !p.Alive() {
		return fmt.Errorf("process %d: %w", p.Info.PID, fs.ErrNotExist)
	}
	return syscall.Kill(p.Info.PID, syscall.SIGKILL)
}

// macPeers tells who opened a connection: its process is held by pid and start time.
type macPeers struct {
	table  procs.Table
	credOf func(fd int) (procs.Cred, error)
}

// Identify implements helper.Peers.
func (p macPeers) Identify(uc *net.UnixConn) (helper.Peer, error) {
	raw, err := uc.SyscallConn()
	if err != nil {
		return helper.Peer{}, fmt.Errorf("peer: %w", err)
	}
	var cred procs.Cred
	var info procs.Info
	var inner error
	err = raw.Control(func(fd uintptr) {
		cred, info, inner = procs.Hold(p.table, func() (procs.Cred, error) { return p.credOf(int(fd)) })
	})
	if err = errors.Join(err, inner); err != nil {
		return helper.Peer{}, fmt.Errorf("peer: %w", err)
	}
	alive := func() error {
		if !(macProcess{p.table, info}).Alive() {
			return errors.New("the process that opened this connection has ended")
		}
		return nil
	}
	return helper.NewPeer(cred.UID, cred.PID, cred.Groups, alive, nil), nil
}
