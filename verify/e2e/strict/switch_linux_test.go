package strict

import (
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

// echoes sends a datagram to an address that only the switch has, and prints what comes back.
const echoes = "exec 3<>/dev/udp/192.0.2.80/7; echo hello >&3; timeout 20 dd bs=100 count=1 status=none <&3"

// What a box of mode own-ip has is what its switch gives it: packets, a name server, callers from outside.
func TestSwitch(t *testing.T) {
	env := append(place(t), probeEnv+"=1")
	user, program := rig.Cmd{UID: rig.User, Env: env}, prober(t)
	r := user.Run(t, "run", "--name", "guest", "--mode", "own-ip", "--switch", program, "--tap", "10.9.8.7/24,10.9.8.1", "--",
		"/bin/bash", "-c", echoes+"; cat /etc/resolv.conf; ip -o -4 address show dev tap0 | grep -o 'inet [^ ]*'; echo $MINHOST_TAP_FD")
	if want := "hello\nnameserver 10.9.8.1\ninet 10.9.8.7/24\n\n"; r.Status != 0 || r.Stdout != want {
		t.Errorf("want %q: %v", want, r)
	}
	if !strings.Contains(r.Stderr, " 10.9.8.7/24 10.9.8.1 1500 \n") || strings.Contains(r.Stderr, "minhost:") {
		t.Errorf("the switch was told %q", r.Stderr)
	}
	if pid := switchPID(r.Stderr); pid == 0 || !gone(pid) {
		t.Errorf("the switch %d lives on", pid)
	}
	if len(rig.Leaves(t)) != 0 || len(kept(t, env)) != 0 {
		t.Errorf("left: %v, %v", rig.Leaves(t), kept(t, env))
	}
}

// Its sockets on the host are the switch's, for it to forward; the program has none.
func TestSwitchListens(t *testing.T) {
	env := append(place(t), probeEnv+"=1")
	user, program := rig.Cmd{UID: rig.User, Env: env}, prober(t)
	p := user.Start(t, "run", "--name", "guest", "--mode", "own-ip", "--switch", program, "--listen", "3000", "--",
		"/bin/bash", "-c", "echo $MINHOST_ADDRESS; for i in /proc/$$/fd/*; do [ ! -L $i ] || echo -n \"${i##*/} \"; done; echo up; exec sleep 300")
	p.Await("up")
	address, fds, _ := strings.Cut(p.Stdout(), "\n")
	if !strings.HasPrefix(fds, "0 1 2 ") || strings.Contains(fds, " 3 ") {
		t.Errorf("the program has descriptors %q", fds)
	}
	c, err := net.DialTimeout("tcp", address+":3000", 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if b, err := io.ReadAll(c); string(b) != "the switch\n" {
		t.Errorf("%q, %v", b, err)
	}
	// Whoever joins is in the same network.
	if r := user.Run(t, "run", "--join", "guest", "--", "/bin/bash", "-c", echoes); r.Stdout != "hello\n" {
		t.Errorf("joined: %v", r)
	}
	user.Run(t, "stop", "guest").Want(t, 0)
	if r := p.Wait(); !strings.Contains(r.Stderr, "4/tcp/3000") || !gone(switchPID(r.Stderr)) {
		t.Errorf("the switch: %v", r)
	}
}

// A switch that ends leaves its box without a network, and is told of; that of a runner that is killed ends with
// the tap.
func TestSwitchEnds(t *testing.T) {
	env := append(place(t), probeEnv+"=1")
	program := prober(t)
	args := func(line string) []string {
		return []string{"run", "--mode", "own-ip", "--switch", program, "--", "/bin/bash", "-c", line}
	}
	p := rig.Cmd{UID: rig.User, Env: append(env, "SWITCH_ENDS=1")}.Start(t, args("echo up; exec sleep 300")...)
	rig.Eventually(t, 20*time.Second, "the end of the switch is told", func() bool {
		return strings.Contains(p.Stderr(), "the switch of box ") && strings.Contains(p.Stderr(), "has ended (exit status 3): the box reaches nothing any more")
	})
	p.Signal(syscall.SIGTERM)
	if r := p.Wait(); r.Status != 143 {
		t.Errorf("%v", r)
	}
	p = rig.Cmd{UID: rig.User, Env: env}.Start(t, args("echo up; exec sleep 300")...)
	p.Await("up")
	pid := 0
	rig.Eventually(t, 20*time.Second, "the switch says who it is", func() bool { pid = switchPID(p.Stderr()); return pid != 0 })
	if gone(pid) {
		t.Fatalf("the switch %d does not run", pid)
	}
	p.Signal(syscall.SIGKILL)
	rig.Eventually(t, 20*time.Second, "nothing is left", func() bool { return gone(pid) && len(rig.Leaves(t)) == 0 })
}

func TestNoSwitch(t *testing.T) {
	env := place(t)
	shell(t, env, "echo ran", "--mode", "own-ip").Want(t, 125, "--mode own-ip needs --switch PROGRAM", "next: minhost run --help")
	shell(t, env, "echo ran", "--mode", "own-ip", "--switch", "no-such-switch").Want(t, 127, "no-such-switch")
	shell(t, env, "echo ran", "--mode", "own-ip", "--switch", "/etc/passwd").Want(t, 126, "/etc/passwd")
	r := shell(t, env, "echo ran", "--mode", "own-ip", "--switch", "true", "--tap", "10.0.2.0/24,10.0.2.2")
	r.Want(t, 125, "tap.address", "is not the address of a host")
	if r.Stdout != "" || len(rig.Leaves(t)) != 0 {
		t.Errorf("the program ran: %v, %v", r, rig.Leaves(t))
	}
}
