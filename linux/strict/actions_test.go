package strict

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func text(actions []Action) string {
	var b strings.Builder
	for _, a := range actions {
		fmt.Fprintf(&b, "%s %s", a.Do, a.Path)
		for _, part := range []struct{ name, value string }{{"from", a.From}, {"type", a.Type}, {"flags", a.Flags}, {"data", a.Data}} {
			if part.value != "" {
				fmt.Fprintf(&b, " %s=%q", part.name, part.value)
			}
		}
		if a.Gone {
			b.WriteString(" if there")
		}
		if a.Mode != 0 {
			fmt.Fprintf(&b, " mode=%o", a.Mode)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// A desktop with systemd-resolved, and a minimal host.
func TestActions(t *testing.T) {
	for name, c := range map[string]struct {
		spec Spec
		host Host
	}{
		"desktop": {
			Spec{Nameservers: []string{"127.0.0.1"}, Terminal: true, Hide: []string{"/tmp/tmux-1000", "/tmp/tmux-1000/default", "/var/lib/incus/unix.socket", "/run/minhost", "/gone"}},
			Host{UID: 1000, Terminal: "/dev/pts/7", Resolv: "/run/systemd/resolve/stub-resolv.conf", Content: "nameserver 127.0.0.53\n",
				RunLinks: map[string]string{"current-system": "/nix/store/x", "shm": "/dev/shm"}, Cgroups: []string{"/sys/fs/cgroup"},
				Kinds: map[string]byte{"/run/media": 'd', "/dev/pts": 'd', "/dev/shm": 'd', "/dev/mqueue": 'd', "/dev/console": 'f',
					"/tmp/tmux-1000": 'd', "/tmp/tmux-1000/default": 'f', "/var/lib/incus/unix.socket": 'f', "/run/minhost": 'd'}},
		},
		"minimal": {
			Spec{Nameservers: []string{"127.0.0.1"}},
			Host{UID: 0, Resolv: "/etc/resolv.conf", Content: "nameserver 192.0.2.1\n", Kinds: map[string]byte{"/var/run": 'd'}},
		},
		"open": { // keeps its name servers, which /run had
			Spec{},
			Host{UID: 1, Resolv: "/run/resolvconf/resolv.conf", Content: "nameserver 192.0.2.1\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := text(c.spec.Actions(c.host))
			file := filepath.Join("testdata", name+".txt")
			if os.Getenv("UPDATE") != "" {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || got != string(want) {
				t.Errorf("got:\n%s\nwant %s (%v):\n%s", got, file, err, want)
			}
		})
	}
}

func TestSockets(t *testing.T) {
	const table = "Num       RefCount Protocol Flags    Type St Inode Path\n" +
		"0000000000000000: 00000002 00000000 00010000 0001 01 26022 /run/dbus/system_bus_socket\n" +
		"0000000000000000: 00000002 00000000 00010000 0001 01 26023 @/tmp/.X11-unix/X0\n" +
		"0000000000000000: 00000002 00000000 00010000 0001 01 26024 /tmp/with blanks and /slash\n" +
		"0000000000000000: 00000002 00000000 00010000 0001 01 26025 /tmp/a\n" +
		"0000000000000000: 00000003 00000000 00000000 0001 03 26026 /tmp/a\n" +
		"0000000000000000: 00000002 00000000 00010000 0001 01 26027 /var/run/docker.sock\n" +
		"0000000000000000: 00000003 00000000 00000000 0001 03 26028\n" +
		"0000000000000000: 00000003 00000000 00000000 0001 03 26029 relative/path\n"
	got := Sockets(table)
	// A relative path has no meaning here; what its slash begins is not one either, and is not there.
	if want := []string{"/path", "/tmp/a", "/tmp/with blanks and /slash"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAdvice(t *testing.T) {
	read := func(files map[string]string) func(string) (string, error) {
		return func(path string) (string, error) {
			if s, ok := files[path]; ok {
				return s, nil
			}
			return "", os.ErrNotExist
		}
	}
	for _, c := range []struct {
		files map[string]string
		cause string
	}{
		{nil, ""},
		{map[string]string{"/proc/sys/user/max_user_namespaces": "96365\n", "/proc/sys/kernel/unprivileged_userns_clone": "1\n", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "0\n"}, ""},
		{map[string]string{"/proc/sys/user/max_user_namespaces": "0\n"}, "max_user_namespaces is 0"},
		{map[string]string{"/proc/sys/kernel/unprivileged_userns_clone": "0\n"}, "unprivileged_userns_clone is 0"},
		{map[string]string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"}, "AppArmor"},
	} {
		cause, next := Advice(read(c.files))
		if !strings.Contains(cause, c.cause) || (c.cause == "") != (next == "") || (c.cause == "") != (cause == "") {
			t.Errorf("%v: %q, %q", c.files, cause, next)
		}
	}
}
