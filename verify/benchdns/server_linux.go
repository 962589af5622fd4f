package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// server is a peer that runs.
type server struct {
	peer
	folder string
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

// start runs a peer on one core and waits until it answers.
func start(ctx context.Context, p peer, folder string, b bench) (*server, error) {
	s := &server{peer: p, folder: folder}
	for name, content := range p.files(p, folder) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	argv := append([]string{"/usr/bin/taskset", "-c", strconv.Itoa(b.serverCPU), p.program()}, p.args(p, folder)...)
	s.cmd = exec.CommandContext(ctx, argv[0], argv[1:]...)
	s.cmd.Stdout, s.cmd.Stderr = &s.stderr, &s.stderr
	s.cmd.Dir = folder
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(os.Interrupt) }
	s.cmd.WaitDelay = 5 * time.Second
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	queries, err := mix()
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if answers(p.port, queries[0]) {
			return s, nil
		}
	}
	s.stop()
	return nil, fmt.Errorf("start %s: no answer within ten seconds: %s", p.name, s.stderr.String())
}

// answers tells whether a query gets an address.
func answers(port int, query []byte) bool {
	conn, err := net.Dial("udp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(200 * time.Millisecond))
	buf := make([]byte, 2048)
	_, err = conn.Write(query)
	if err == nil {
		_, err = conn.Read(buf)
	}
	return err == nil && buf[7] == 1
}

// stop ends the server and what it forked: they are one process group no more than any other, but
// each of them gives up when its parent is gone.
func (s *server) stop() {
	pids := append(descendants(s.cmd.Process.Pid), s.cmd.Process.Pid)
	for _, pid := range pids {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Signal(os.Interrupt)
		}
	}
	timer := time.AfterFunc(3*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	_ = s.cmd.Wait()
}

// cpu is the processor time of the server so far, all of its processes and threads.
func (s *server) cpu() (time.Duration, error) {
	var sum time.Duration
	pid := s.cmd.Process.Pid
	for _, pid := range append(descendants(pid), pid) {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if err != nil {
			return 0, err
		}
		for _, task := range tasks {
			text, err := os.ReadFile(task)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			first, _, _ := strings.Cut(string(text), " ")
			ns, err2 := strconv.ParseInt(first, 10, 64)
			if err := errors.Join(err, err2); err != nil {
				return 0, err
			}
			sum += time.Duration(ns)
		}
	}
	return sum, nil
}

// descendants are the children of a process and theirs.
func descendants(pid int) []int {
	var all []int
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(append(all, child), descendants(child)...)
			}
		}
	}
	return all
}

// resident is the memory of the server's own process.
func (s *server) resident() string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strings.TrimSpace(value)
		}
	}
	return "?"
}
