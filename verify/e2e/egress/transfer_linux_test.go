package egress

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/netlab"
)

// beyond is a host behind the other one, which routes.
const beyond = "10.98.1.2"

// router makes o a router to another namespace, and returns that. What is wrong with the way is wrong in its
// forward chain and on its link: rules that drop at random and a token bucket do what netem would, which not
// every kernel has.
func (h *host) router(o outside) outside {
	h.Helper()
	p := netlab.Start(h, netlab.Spawn{Leaf: netlab.NoLeaf, Cloneflags: syscall.CLONE_NEWNET}, "netlab-sleep")
	p.Line()
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", p.PID()))
	h.must(err)
	h.Cleanup(func() { ns.Close() })
	end := outside{ns}
	o.do(func() {
		h.run("ip", "link", "add", "hop", "type", "veth", "peer", "name", "end", "netns", fmt.Sprint(p.PID()))
		h.run("ip", "addr", "add", "10.98.1.1/24", "dev", "hop")
		h.run("ip", "link", "set", "hop", "up")
		h.must(os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644))
	})
	end.do(func() {
		h.run("ip", "link", "set", "lo", "up")
		h.run("ip", "addr", "add", beyond+"/24", "dev", "end")
		h.run("ip", "link", "set", "end", "up")
		h.run("ip", "route", "add", "default", "via", "10.98.1.1")
	})
	h.run("ip", "route", "add", "10.98.1.0/24", "via", far)
	return end
}

// TestLongTransfers: what an allowed flow meets on its way is no reason to refuse it: loss and what is sent
// again, a window that closes, silence, an end of one side only, a way that takes smaller packets than
// before, fragments, a connection tracking table that somebody flushed.
func TestLongTransfers(t *testing.T) {
	h := newHost(t)
	o := h.outside()
	end := h.router(o)
	end.do(func() {
		l, err := net.Listen("tcp", beyond+":9000")
		h.must(err)
		t.Cleanup(func() { l.Close() })
		go echo(l, nil)
		if got := serve("udp", beyond+":9001"); got != "ok" {
			t.Fatal(got)
		}
	})
	b := h.box("far", rules(beyond+" 9000 tcp", beyond+" 9001 udp"))
	before, err := h.dial().Status(h.ctx())
	h.must(err)
	transfer := func(how, port string) {
		t.Helper()
		if got := ask[string](b, order{Op: "transfer", Network: how, Address: beyond + ":" + port}); got != "ok" {
			t.Errorf("%s: %s", how, got)
		}
	}
	transfer("plain", "9000")
	o.do(func() {
		h.run("tc", "qdisc", "add", "dev", "hop", "root", "tbf", "rate", "200mbit", "burst", "20k", "limit", "40k")
		h.run("nft", "table ip way { chain f { type filter hook forward priority 0; numgen random mod 100 < 3 counter drop; }; }")
	})
	transfer("plain", "9000")
	transfer("stalled", "9000")
	o.do(func() {
		out, err := exec.Command("nft", "list", "table", "ip", "way").CombinedOutput()
		if err != nil || strings.Contains(string(out), "packets 0 ") {
			t.Errorf("nothing was lost: %v %s", err, out)
		}
		h.run("nft", "delete", "table", "ip", "way")
	})
	transfer("idle", "9000")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, mtu := range []string{"1400", "1000", "576"} {
			time.Sleep(150 * time.Millisecond)
			o.do(func() { h.run("ip", "link", "set", "hop", "mtu", mtu) })
		}
	}()
	transfer("slow", "9000")
	<-done
	o.do(func() { h.run("ip", "link", "set", "hop", "mtu", "1500") })
	done = make(chan struct{})
	go func() {
		defer close(done)
		for range 10 {
			time.Sleep(60 * time.Millisecond)
			h.run("conntrack", "-F")
		}
	}()
	transfer("slow", "9000")
	<-done
	transfer("fragments", "9001")
	after, err := h.dial().Status(h.ctx())
	h.must(err)
	if after.Refused != before.Refused {
		t.Errorf("%d packets were refused", after.Refused-before.Refused)
	}
	b.reaches("tcp", beyond+":9002", false)
}
