package main

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// The servers that boxes try.
const (
	open4, open6 = outside + ":8080", "[" + outside6 + "]:8080"
	shut4, shut6 = outside + ":8081", "[" + outside6 + "]:8081"
	host4, host6 = "127.0.0.1:9000", "[::1]:9000"
)

// own are a box's own servers, which every box reaches.
var own = []string{"self:tcp:127.0.0.1", "self:tcp:[::1]", "self:udp:127.0.0.1", "self:udp:[::1]"}

var everybody = []string{
	"tcp:" + open4, "tcp:" + open6, "udp:" + open4, "udp:" + open6,
	"tcp:" + shut4, "tcp:" + shut6, "udp:" + shut4, "udp:" + shut6,
	"tcp:" + host4, "tcp:" + host6, "udp:" + host4, "udp:" + host6,
}

// boxes are the kinds of box; all servers that are not listed are to be refused.
var boxes = []struct {
	name    string
	flags   []string
	reaches []string
}{
	{"deny", []string{"--egress", "deny"}, nil},
	{"listed", []string{"--allow", outside + "/32:8080", "--allow", "[" + outside6 + "]/128:8080/udp", "--allow", "127.0.0.1/32:9000/udp"},
		[]string{"tcp:" + open4, "udp:" + open6, "udp:" + host4}},
	{"open", []string{"--egress", "open"}, everybody},
	{"less", []string{"--egress", "open", "--deny-subnet", outside6 + "/128"},
		[]string{"tcp:" + open4, "udp:" + open4, "tcp:" + shut4, "udp:" + shut4, "tcp:" + host4, "tcp:" + host6, "udp:" + host4, "udp:" + host6}},
}

// use tries boxes of every kind, and lookups.
func use() {
	check("the host reaches everybody", outcomes(run("", share+"/guest", append([]string{"try"}, everybody...)...), everybody))
	for _, b := range boxes {
		r := box(b.name, b.flags, append([]string{share + "/guest", "try"}, append(everybody, own...)...)...)
		if !check("box "+b.name, outcomes(r, append(b.reaches, own...))) {
			note("%s\n%s", r.out, r.err)
		}
	}
	r := box("told", []string{"--egress", "deny"}, share+"/guest", "try", "tcp:"+open4)
	if want := outside + ":8080"; !strings.Contains(r.err, want) || !strings.Contains(r.err, "told") {
		check("a refusal is told", fmt.Errorf("no %s of box told: %s", want, r.err))
	} else {
		check("a refusal is told", nil)
	}
	inside := []string{"self:tcp:127.0.0.1", "self:udp:[::1]"}
	r = box("nested", []string{"--egress", "deny"}, "/usr/bin/unshare", "-rn", "/bin/sh", "-c",
		"ip link set lo up && exec "+share+"/guest try "+strings.Join(inside, " "))
	check("a network namespace inside a box", outcomes(r, inside))
	names()
}

func box(name string, flags []string, program ...string) result {
	args := append(append([]string{"run", "--name", name}, flags...), "--")
	return run(runner, installed, append(args, program...)...)
}

// outcomes is an error unless exactly those targets were reached, and the others refused at once.
func outcomes(r result, reached []string) error {
	var wrong []string
	lines := 0
	for line := range strings.Lines(r.out) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		lines++
		want := false
		for _, t := range reached {
			want = want || t == f[0]
		}
		switch {
		case want != (f[1] == "ok"):
			wrong = append(wrong, strings.TrimSpace(line))
		case !want && len(f) == 4:
			ms, err := strconv.Atoi(f[3])
			// A connect that waits for the second SYN takes a second and more.
			if err != nil || ms > 900 {
				wrong = append(wrong, "slowly: "+strings.TrimSpace(line))
			}
		}
	}
	if lines == 0 || len(wrong) > 0 {
		return fmt.Errorf("%d lines, wrong: %s\nstatus %d %s", lines, strings.Join(wrong, "; "), r.status, r.err)
	}
	return nil
}

// alive starts a box that lives until the second value is called; its lines come through the channel.
func alive(name string, flags []string, program ...string) (<-chan string, func(), error) {
	ctx, cancel := context.WithCancel(context.Background())
	args := append([]string{"--reuid", runner, "--regid", runner, "--init-groups", "--", installed, "run", "--name", name}, flags...)
	cmd := exec.CommandContext(ctx, "/usr/bin/setpriv", append(append(args, "--"), program...)...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, nil, err
	}
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return lines, func() { cancel(); _ = cmd.Wait() }, nil
}

func next(lines <-chan string, within time.Duration) string {
	select {
	case l, ok := <-lines:
		if !ok {
			return "(the box ended)"
		}
		return l
	case <-time.After(within):
		return "(nothing)"
	}
}

// names looks a box up by everything that looks up here.
func names() {
	lines, end, err := alive("web", []string{"--egress", "deny"}, "/bin/sh", "-c", "echo $MINHOST_ADDRESS; exec sleep 600")
	if !check("a box that stays", err) {
		return
	}
	defer end()
	address := next(lines, 2*time.Minute)
	has := func(r result) error {
		if !strings.Contains(r.out, address) {
			return fmt.Errorf("want %s: %q %v", address, r.out, r.good())
		}
		return nil
	}
	const name = "web.min.internal"
	check("lookup: the answerer", has(run("", share+"/guest", "try", "name:127.0.0.1:15353:"+name)))
	check("lookup: systemd-resolved's stub", has(run("", share+"/guest", "try", "name:127.0.0.53:53:"+name)))
	check("lookup: getent ahostsv4", has(run("", "getent", "ahostsv4", name)))
	check("lookup: getent hosts", has(run("", "getent", "hosts", name)))
	check("lookup: resolvectl", has(run("", "resolvectl", "query", name)))
	check("lookup: by another box", has(box("asker", []string{"--egress", "deny"}, share+"/guest", "try", "name:127.0.0.53:53:"+name)))
	r := box("asker", []string{"--egress", "deny"}, share+"/guest", "try", "name:127.0.0.53:53:www.example.com", "name:"+outside+":53:www.example.com")
	if strings.Count(r.out, " NXDOMAIN") != 2 {
		check("lookup: a confined box is told of nothing else", fmt.Errorf("want NXDOMAIN twice: %s", r.out))
	} else {
		check("lookup: a confined box is told of nothing else", nil)
	}
	check("lookup: the outside world", outerName())
	note("min0: %s", run("", "ip", "-d", "link", "show", "min0").out)
}

// flush takes the table from under live boxes: neither may reach anything new, until it is back.
func flush() {
	deny, endDeny, err := alive("shut", []string{"--egress", "deny"}, share+"/probe", "out=tcp:"+open4, "host=udp:"+host4)
	if !check("flush: a deny box", err) {
		return
	}
	defer endDeny()
	listed, endListed, err := alive("some", []string{"--allow", outside + "/32:8080"}, share+"/probe", "out=tcp:"+open4)
	if !check("flush: a listed box", err) {
		return
	}
	defer endListed()
	for range 2 {
		note("deny: %s", next(deny, 2*time.Minute))
	}
	// The first try may be too slow for probe.
	check("flush: the listed box reaches its server before", eventually(3*time.Minute, "ok", func() error {
		if l := next(listed, time.Minute); !strings.HasSuffix(l, "out ok") {
			return fmt.Errorf("%s", l)
		}
		return nil
	}))
	check("flush: nft flush ruleset", run("", "nft", "flush", "ruleset").good())
	note("listed: %s", next(listed, time.Minute)) // may be refused for a moment
	err = eventually(3*time.Minute, "the listed box reaches its server again", func() error {
		r := box("again", []string{"--allow", outside + "/32:8080"}, share+"/guest", "try", "tcp:"+open4)
		return outcomes(r, []string{"tcp:" + open4})
	})
	check("flush: the table comes back", err)
	for len(deny) > 0 {
		if l := next(deny, 0); strings.HasSuffix(l, " ok") {
			check("flush: the deny box reaches nothing", fmt.Errorf("%s", l))
			return
		}
	}
	check("flush: the deny box reaches nothing", nil)
	verify()
}
