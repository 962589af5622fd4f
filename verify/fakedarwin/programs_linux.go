package fakedarwin

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"howett.net/plist"
)

// answer is the model's one table of programs.
func (m *Mac) answer(c Call) Answer {
	switch c.Name {
	case "ifconfig":
		return m.ifconfig(c)
	case "launchctl":
		return m.launchd.control(c)
	case "scutil":
		return m.resolver.scutil(c)
	case "dscacheutil":
		return m.resolver.dscacheutil(c)
	case "killall":
		return m.killall(c)
	case "sysctl":
		return m.sysctl(c)
	case "sudo":
		return m.sudo(c)
	case "plutil":
		return m.plutil(c)
	case "netstat":
		return netstat()
	case "shasum":
		sum := sha256.Sum256(c.Stdin)
		return Answer{Stdout: hex.EncodeToString(sum[:]) + "  -\n"}
	case "sw_vers":
		return Answer{Stdout: fmt.Sprintf("ProductName:\t\tmacOS\nProductVersion:\t\t%d.0\nBuildVersion:\t\t25A1\n", m.Release)}
	case "id":
		return identity(c)
	}
	return m.person(c)
}

func identity(c Call) Answer {
	if len(c.Args) == 1 && c.Args[0] == "-u" {
		return Answer{Stdout: fmt.Sprintln(c.uid)}
	}
	return Answer{Stdout: fmt.Sprintf("uid=%d gid=%d\n", c.uid, c.uid)}
}

// sudo counts who was asked. Without a terminal nobody can be.
func (m *Mac) sudo(c Call) Answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.prompts++
	if m.NoPrompt && len(c.Args) > 0 && c.Args[0] == "-n" {
		return fail(1, "sudo: a password is required")
	}
	return Answer{}
}

func (m *Mac) sysctl(c Call) Answer {
	var out strings.Builder
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range c.Args {
		switch name {
		case "-n":
		case "kern.bootsessionuuid":
			fmt.Fprintln(&out, m.boot.id)
		case "kern.boottime":
			at := m.boot.at
			fmt.Fprintf(&out, "{ sec = %d, usec = %d } %s\n", at.Unix(), at.Nanosecond()/1000, at.Format(time.ANSIC))
		default:
			return fail(1, "sysctl: unknown oid '%s'", name)
		}
	}
	return Answer{Stdout: out.String()}
}

func (m *Mac) killall(c Call) Answer {
	if len(c.Args) != 2 || c.Args[0] != "-HUP" || c.Args[1] != "mDNSResponder" {
		return fail(1, "No matching processes were found")
	}
	if c.uid != 0 {
		return fail(1, "killall: warning: kill -HUP 100: Operation not permitted")
	}
	m.resolver.hangup()
	return Answer{}
}

// plutil knows -lint.
func (m *Mac) plutil(c Call) Answer {
	if len(c.Args) != 2 || c.Args[0] != "-lint" {
		return fail(1, "plutil: unknown option")
	}
	b, err := os.ReadFile(filepath.Join(m.Root, c.Args[1]))
	var v map[string]any
	if err == nil {
		_, err = plist.Unmarshal(b, &v)
	}
	if err != nil {
		return fail(1, "%s: %v", c.Args[1], err)
	}
	return Answer{Stdout: c.Args[1] + ": OK\n"}
}

// netstat prints the sockets of the real kernel in the words of macOS.
func netstat() Answer {
	out := "Active Internet connections (including servers)\nProto Recv-Q Send-Q  Local Address  Foreign Address  (state)\n"
	for kind, file := range map[string]string{"tcp4": "/proc/net/tcp", "udp4": "/proc/net/udp"} {
		f, err := os.Open(file)
		if err != nil {
			return fail(1, "netstat: %v", err)
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			w := strings.Fields(lines.Text())
			if len(w) < 4 || w[0] == "sl" {
				continue
			}
			state := map[string]string{"0A": "LISTEN", "01": "ESTABLISHED", "06": "TIME_WAIT"}[w[3]]
			out += fmt.Sprintf("%s 0 0 %s %s %s\n", kind, dotted(w[1]), dotted(w[2]), state)
		}
		f.Close()
	}
	return Answer{Stdout: out}
}

// dotted turns "0100007F:3BF9" into "127.0.0.1.15353".
func dotted(s string) string {
	addr, port, _ := strings.Cut(s, ":")
	b, err := hex.DecodeString(addr)
	n, err2 := strconv.ParseUint(port, 16, 16)
	if err != nil || err2 != nil || len(b) != 4 {
		return "*.*"
	}
	return fmt.Sprintf("%d.%d.%d.%d.%d", b[3], b[2], b[1], b[0], n)
}
