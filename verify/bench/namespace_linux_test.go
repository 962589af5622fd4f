package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

// nets makes what a runtime gives a container at the least: a network namespace with loopback, one end of a
// veth pair with an address and a route, and the other end up in the host.
type nets struct {
	b    *testing.B
	host *netlink.Handle
}

func newNets(b *testing.B) *nets {
	h, err := netlink.NewHandle()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(h.Close)
	return &nets{b, h}
}

// once makes one and removes it again.
func (n *nets) once(i int) (made, removed time.Duration) {
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with its namespace
		made, removed, err = n.inThread(fmt.Sprintf("bench%d", i))
	}()
	<-done
	if err != nil {
		n.b.Fatal(err)
	}
	return made, removed
}

func (n *nets) inThread(name string) (made, removed time.Duration, err error) {
	start := time.Now()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return 0, 0, err
	}
	ns, err := os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
	if err != nil {
		return 0, 0, err
	}
	defer ns.Close()
	inside, err := netlink.NewHandle()
	if err != nil {
		return 0, 0, err
	}
	defer inside.Close()
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: "eth0", PeerNamespace: netlink.NsFd(ns.Fd())}
	if err := n.host.LinkAdd(pair); err != nil {
		return 0, 0, fmt.Errorf("veth: %w", err)
	}
	for _, end := range []struct {
		h             *netlink.Handle
		name, address string
	}{{n.host, name, "10.98.0.1/30"}, {inside, "lo", ""}, {inside, "eth0", "10.98.0.2/30"}} {
		if err := up(end.h, end.name, end.address); err != nil {
			return 0, 0, fmt.Errorf("%s: %w", end.name, err)
		}
	}
	if err := inside.RouteAdd(&netlink.Route{Gw: []byte{10, 98, 0, 1}}); err != nil {
		return 0, 0, fmt.Errorf("route: %w", err)
	}
	made = time.Since(start)
	start = time.Now()
	err = n.host.LinkDel(pair)
	return made, time.Since(start), err
}

func up(h *netlink.Handle, name, address string) error {
	l, err := h.LinkByName(name)
	if err != nil {
		return err
	}
	if address != "" {
		a, err := netlink.ParseAddr(address)
		if err != nil {
			return err
		}
		if err := h.AddrAdd(l, a); err != nil {
			return err
		}
	}
	return h.LinkSetUp(l)
}

// plugin is the bridge plugin of CNI with its own address management.
type plugin struct {
	b    *testing.B
	path string
}

// pluginDirs are where distributions and Kubernetes put them.
var pluginDirs = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

func newPlugin(b *testing.B) *plugin {
	for _, dir := range pluginDirs {
		if _, err := os.Stat(dir + "/bridge"); err == nil {
			return &plugin{b, dir}
		}
	}
	b.Log("SKIP bench: no CNI bridge plugin (Debian: containernetworking-plugins)")
	return nil
}

func (p *plugin) once(i int) (made, removed time.Duration) {
	child := netlab.Start(p.b, netlab.Spawn{Leaf: netlab.NoLeaf, Cloneflags: syscall.CLONE_NEWNET}, "held")
	child.Line()
	defer child.Kill()
	return p.run("ADD", i, child.PID()), p.run("DEL", i, child.PID())
}

func (p *plugin) run(command string, i, pid int) time.Duration {
	cmd := exec.Command(p.path + "/bridge")
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "CNI_COMMAND=" + command, fmt.Sprintf("CNI_CONTAINERID=bench%d", i),
		fmt.Sprintf("CNI_NETNS=/proc/%d/ns/net", pid), "CNI_IFNAME=eth0", "CNI_PATH=" + p.path}
	cmd.Stdin = bytes.NewBufferString(`{"cniVersion": "0.4.0", "name": "bench", "type": "bridge", "bridge": "bench-br", "isGateway": true,
		"ipam": {"type": "host-local", "subnet": "10.97.0.0/16", "dataDir": "/run/bench-cni", "routes": [{"dst": "0.0.0.0/0"}]}}`)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(start)
	if err != nil {
		p.b.Fatalf("bridge %s: %v: %s", command, err, out)
	}
	return took
}
