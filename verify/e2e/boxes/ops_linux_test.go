package boxes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
	"github.com/gominimal/minhost/verify/netlab"
)

// ops is what an agent can do.
var ops = map[string]func(json.RawMessage) (any, error){
	"dial":    op(func(d netlab.Dial) (netlab.Outcome, error) { return d.Do(), nil }),
	"serve":   op(serveEcho),
	"ping":    op(ping),
	"lookup":  op(lookup),
	"write":   op(func(in [2]string) (string, error) { return errnoOf(writeFile(in[0], in[1])), nil }),
	"exec":    op(execute),
	"call":    op(callHelper),
	"sockopt": op(sockopt),
	"probe":   op(startProbe),
	"halt":    op(haltProbe),
	"cgroup":  op(func(struct{}) (string, error) { b, err := os.ReadFile("/proc/self/cgroup"); return string(b), err }),
	"udp":     op(udpOp),
	"detach":  op(detach),
	"hold":    op(holdFlow),
	"talk":    op(talkFlow),
	"latency": op(refusals),
}

func errnoOf(err error) string {
	var errno unix.Errno
	switch {
	case err == nil:
		return ""
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

func writeFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

// serveEcho answers on a network and address until the process ends.
func serveEcho(in [2]string) (string, error) {
	if strings.HasPrefix(in[1], "0.0.0.0") {
		in[0] += "4" // net takes it for both families otherwise
	}
	if in[0] == "udp" || in[0] == "udp4" || in[0] == "udp6" {
		pc, err := net.ListenPacket(in[0], in[1])
		if err != nil {
			return "", err
		}
		go func() {
			buf := make([]byte, 1500)
			for {
				n, from, err := pc.ReadFrom(buf)
				if errors.Is(err, net.ErrClosed) {
					return
				}
				if err == nil {
					pc.WriteTo(buf[:n], from)
				}
			}
		}()
		return pc.LocalAddr().String(), nil
	}
	l, err := net.Listen(in[0], in[1])
	if err != nil {
		return "", err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String(), nil
}

// ping sends one echo request and waits for the reply.
func ping(to string) (netlab.Outcome, error) {
	a, err := netip.ParseAddr(to)
	if err != nil {
		return netlab.Outcome{}, err
	}
	family, proto, kind := unix.AF_INET, unix.IPPROTO_ICMP, byte(8)
	var sa unix.Sockaddr = &unix.SockaddrInet4{Addr: ip4(a)}
	if a.Is6() {
		family, proto, kind = unix.AF_INET6, unix.IPPROTO_ICMPV6, 128
		sa = &unix.SockaddrInet6{Addr: a.As16()}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return netlab.Outcome{}, fmt.Errorf("ping socket: %w", err)
	}
	defer unix.Close(fd)
	tv := unix.NsecToTimeval(int64(300 * time.Millisecond))
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	start := time.Now()
	o := netlab.Outcome{Step: "send"}
	if err = unix.Connect(fd, sa); err == nil {
		_, err = unix.Write(fd, []byte{kind, 0, 0, 0, 0, 0, 0, 1})
	}
	if err == nil {
		o.Step = "receive"
		_, err = unix.Read(fd, make([]byte, 100))
	}
	o.Took = time.Since(start)
	if err != nil && !errors.As(err, &o.Errno) {
		return o, err
	}
	return o, nil
}

// query is one DNS question.
type query struct {
	Network, Server, Name string
	Type                  uint16
}

type answer struct {
	Rcode   string
	Address string // of the first A record
	SOA     bool   // in the authority section
	Took    time.Duration
	Err     string // no reply
}

func lookup(q query) (a answer, err error) {
	if q.Type == 0 {
		q.Type = dns.TypeA
	}
	c := dns.Client{Net: q.Network, Timeout: time.Second}
	reply, took, err := c.Exchange(new(dns.Msg).SetQuestion(dns.Fqdn(q.Name), q.Type), q.Server)
	if err != nil {
		return answer{Err: err.Error(), Took: took}, nil
	}
	a.Rcode, a.Took = dns.RcodeToString[reply.Rcode], took
	for _, rr := range reply.Answer {
		if r, ok := rr.(*dns.A); ok && a.Address == "" {
			a.Address = r.A.String()
		}
	}
	for _, rr := range reply.Ns {
		_, soa := rr.(*dns.SOA)
		a.SOA = a.SOA || soa
	}
	return a, nil
}

// execute runs a program and gives its status and what it printed.
func execute(argv []string) (out struct {
	Status int
	Text   string
}, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = time.Second
	b, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		return out, err
	}
	out.Status, out.Text = cmd.ProcessState.ExitCode(), string(b)
	return out, nil
}

// callHelper calls one method and gives the name of its error, or "".
func callHelper(in struct{ Method, Box, To string }) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, layout.Socket)
	if err != nil {
		return "", err
	}
	defer c.Close()
	switch in.Method {
	case "Plan":
		_, err = c.Plan(ctx, api.PlanIn{Mode: api.ModeHost, Policy: openPolicy()})
	case "List":
		_, err = c.List(ctx)
	case "Status":
		_, err = c.Status(ctx)
	case "Verify":
		_, err = c.Verify(ctx)
	case "Repair":
		_, err = c.Repair(ctx)
	case "Explain":
		_, err = c.Explain(ctx, api.ExplainIn{Box: in.Box, Destination: in.To})
	case "Update":
		err = c.Update(ctx, api.UpdateIn{Lease: in.Box, Secret: in.To, Policy: new(openPolicy())})
	case "Attach":
		err = c.Attach(ctx, api.AttachIn{Lease: in.Box, PID: os.Getpid()}, nil)
	case "Join":
		_, _, err = c.Join(ctx, api.JoinIn{Lease: in.Box, Secret: in.To, Kind: api.JoinKindExec, PID: os.Getpid()}, nil)
	case "Listen":
		_, _, err = c.Listen(ctx, api.ListenIn{Lease: in.Box, Secret: in.To, Protocol: api.ProtocolTCP})
	case "Adopt":
		err = c.Adopt(ctx, api.AdoptIn{Lease: in.Box, Secret: in.To})
	case "Abandon":
		err = c.Abandon(ctx, api.AbandonIn{Lease: in.Box})
	case "Teardown":
		_, err = c.Teardown(ctx, api.TeardownIn{Lease: in.Box, Secret: in.To, Kill: true})
	default:
		return "", errors.New("no such method")
	}
	if name := api.ErrorName(err); name != "" || err == nil {
		return name, nil
	}
	return "", err
}
