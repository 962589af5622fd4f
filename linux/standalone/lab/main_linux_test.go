// Package lab tests linux/standalone on the real kernel, in namespaces of its own. The test binary
// stands in for the program: it is copied to its installed place and plays all roles: it does
// not test the real helper or answerer. Nothing imports it.
package lab

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/gominimal/minhost/linux"
	"github.com/gominimal/minhost/linux/standalone"
	"github.com/gominimal/minhost/verify/netlab"
)

// seen is where the stand-ins leave what they saw, and read how to behave. Everybody may write it.
const seen = "/run/seen"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if role, ok := roles[os.Args[1]]; ok {
			if err := role(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(netlab.Main(m))
}

var roles = map[string]func([]string) error{
	"supervise":   superviseRole,
	"exec-listen": standalone.ExecListen,
	"helper":      helperRole,
	"resolverd":   answererRole,
	"running":     runningRole,
}

func config() standalone.Config {
	l := linux.DefaultLayout()
	return standalone.DefaultConfig(l.Program, l.Run, l.Socket, l.SuperPID, l.Log)
}

func superviseRole(args []string) error {
	c := config()
	set := flag.NewFlagSet("supervise", flag.ContinueOnError)
	ready := set.Int("ready-fd", 0, "")
	set.StringVar(&c.Holder, "holder", "", "")
	if err := set.Parse(args); err != nil {
		return err
	}
	return standalone.Supervise(context.Background(), c, *ready)
}

func runningRole(args []string) error {
	_, _, err := standalone.Running(args[0])
	return err
}

// sight is what a stand-in saw of itself.
type sight struct {
	PID    int
	Env    []string
	Status map[string]string
	FDs    map[string]string
	Cgroup string
	Names  []string
}

// asked tells whether the test wants this behaviour.
func asked(what string) bool {
	_, err := os.Stat(seen + "/" + what)
	return err == nil
}

func look(role string, files []*os.File) error {
	s := sight{PID: os.Getpid(), Env: os.Environ(), Status: map[string]string{}, FDs: map[string]string{}}
	for _, f := range files {
		s.Names = append(s.Names, f.Name())
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		k, v, _ := strings.Cut(line, ":")
		s.Status[k] = strings.TrimSpace(v)
	}
	dir, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range dir {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			s.FDs[e.Name()] = to
		}
	}
	cg, _ := os.ReadFile("/proc/self/cgroup")
	s.Cgroup = string(cg)
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(fmt.Sprintf("%s/%s.%d", seen, role, s.PID), b, 0o644)
}

func helperRole([]string) error {
	if asked("helper.dies") {
		return fmt.Errorf("helper: asked to die")
	}
	files := activation.Files(false)
	if err := look("helper", files); err != nil {
		return err
	}
	if len(files) != 1 {
		return fmt.Errorf("helper: %d sockets", len(files))
	}
	l, err := net.FileListener(files[0])
	if err != nil {
		return err
	}
	if asked("helper.silent") {
		time.Sleep(time.Minute)
	}
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		fmt.Fprintf(conn, "%d\n", os.Getpid())
		conn.Close()
	}
}

func answererRole([]string) error {
	files := activation.Files(false)
	if err := look("answerer", files); err != nil {
		return err
	}
	for _, f := range files {
		if pc, err := net.FilePacketConn(f); err == nil {
			go echo(pc)
		} else if l, err := net.FileListener(f); err == nil {
			go serve(l)
		} else {
			return err
		}
	}
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		return err
	}
	for asked("answerer.shouts") {
		fmt.Println(strings.Repeat("x", 1<<16))
	}
	select {}
}

func echo(pc net.PacketConn) {
	buf := make([]byte, 512)
	for {
		_, from, err := pc.ReadFrom(buf)
		if err != nil {
			return
		}
		pc.WriteTo(fmt.Appendf(nil, "%d\n", os.Getpid()), from)
	}
}

func serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		fmt.Fprintf(conn, "%d\n", os.Getpid())
		conn.Close()
	}
}
