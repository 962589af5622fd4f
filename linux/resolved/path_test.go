package resolved

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

func sample(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + ".conf")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestParseResolvConf(t *testing.T) {
	for name, c := range map[string]struct {
		want ResolvConf
		stub bool
	}{
		"resolvconf-01-stub":                {ResolvConf{[]string{"127.0.0.53"}, "systemd-resolved"}, true},
		"resolvconf-02-uplink-not-stub":     {ResolvConf{[]string{"192.168.20.1", "fd12:3456:789a::1"}, "systemd-resolved"}, false},
		"resolvconf-03-networkmanager":      {ResolvConf{[]string{"10.20.0.2", "10.20.0.3"}, "NetworkManager"}, false},
		"resolvconf-04-wsl-tunnel":          {ResolvConf{[]string{"10.255.255.254"}, "WSL"}, false},
		"resolvconf-05-macos26-notice-only": {ResolvConf{nil, ""}, false},
		"resolvconf-06-vpn-direct":          {ResolvConf{[]string{"100.100.100.100"}, "a VPN client"}, false},
	} {
		got := ParseResolvConf(sample(t, name))
		if !reflect.DeepEqual(got, c.want) || got.Stub() != c.stub {
			t.Errorf("%s: %+v, stub %v", name, got, got.Stub())
		}
	}
	for text, stub := range map[string]bool{
		"nameserver 127.0.0.53\nnameserver 1.1.1.1\n":      false,
		"nameserver 1.1.1.1\nnameserver 127.0.0.53\n":      false,
		"\tnameserver\t127.0.0.53 \n;nameserver 1.1.1.1\n": true,
		"nameserver 127.0.0.54\n":                          true,
		"nameserver 127.0.0.533\n":                         false,
		"#nameserver 127.0.0.53\n":                         false,
		"nameservers 127.0.0.53\n":                         false,
		"nameserver 127.0.0.53\nnameserver 127.0.0.53\n":   true,
		"": false,
	} {
		if got := ParseResolvConf(text).Stub(); got != stub {
			t.Errorf("%q: stub %v", text, got)
		}
	}
}

func TestParseHosts(t *testing.T) {
	for name, c := range map[string]struct {
		want string
		ok   bool
	}{
		"nsswitch-01-debian-server":              {"files dns", true},
		"nsswitch-02-fedora-resolve":             {"files myhostname resolve[NOTFOUND SUCCESS TRYAGAIN] dns", true},
		"nsswitch-03-arch":                       {"mymachines resolve[NOTFOUND SUCCESS TRYAGAIN] files myhostname dns", true},
		"nsswitch-04-ubuntu-desktop-mdns":        {"files mdns4_minimal[NOTFOUND SUCCESS] dns mymachines", true},
		"nsswitch-06-trap-commented-and-missing": {"files dns", false},
	} {
		sources, ok := ParseHosts(sample(t, name))
		if got := show(sources); got != c.want || ok != c.ok {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
	for text, want := range map[string]string{
		"hosts:files[notfound=Return]dns\n":                 "files[NOTFOUND SUCCESS] dns",
		"hosts: files [NOTFOUND=return UNAVAIL=return] dns": "files[NOTFOUND SUCCESS UNAVAIL] dns",
		"hosts: files [SUCCESS=continue] dns":               "files[] dns",
		"hosts: files [SUCCESS=merge] dns":                  "files[] dns",
		" hosts : files\nhosts: dns\n":                      "files",
		"hosts: [NOTFOUND=return] dns [":                    "dns",
		"hosts:\n":                                          "",
	} {
		sources, ok := ParseHosts(text)
		if got := show(sources); got != want || !ok {
			t.Errorf("%q: %q, %v; want %q", text, got, ok, want)
		}
	}
}

// show writes sources with what they return on, where it is not SUCCESS alone.
func show(sources []Source) string {
	var words []string
	for _, s := range sources {
		var on []string
		for _, st := range []Status{notFound, success, tryAgain, unavail} {
			if s.Return[st] {
				on = append(on, string(st))
			}
		}
		if w := strings.Join(on, " "); w != "SUCCESS" {
			s.Name += "[" + w + "]"
		}
		words = append(words, s.Name)
	}
	return strings.Join(words, " ")
}

func TestRead(t *testing.T) {
	const debian, fedora, arch, ubuntu, none = "nsswitch-01-debian-server", "nsswitch-02-fedora-resolve", "nsswitch-03-arch", "nsswitch-04-ubuntu-desktop-mdns", "nsswitch-06-trap-commented-and-missing"
	const stub, uplink, nm, wsl, vpn = "resolvconf-01-stub", "resolvconf-02-uplink-not-stub", "resolvconf-03-networkmanager", "resolvconf-04-wsl-tunnel", "resolvconf-06-vpn-direct"
	for _, c := range []struct {
		nss, conf       string
		module, running bool
		libc, direct    bool
		leaks, cause    string
	}{
		{debian, stub, false, true, true, true, "", ""},
		{fedora, stub, true, true, true, true, "", ""},
		{ubuntu, stub, false, true, true, true, "", ""},
		{none, stub, true, true, true, true, "", ""},
		// Measured (case B69): glibc through nss-resolve, static programs leak.
		{fedora, uplink, true, true, true, false, "192.168.20.1", "names 192.168.20.1, fd12:3456:789a::1 instead of 127.0.0.53, written by systemd-resolved"},
		{arch, nm, true, true, true, false, "10.20.0.2", "written by NetworkManager"},
		// The line names it, the module is not there.
		{fedora, uplink, false, true, false, false, "192.168.20.1", "192.168.20.1"},
		{debian, uplink, true, true, false, false, "192.168.20.1", "192.168.20.1"},
		{ubuntu, nm, true, true, false, false, "10.20.0.2", "NetworkManager"},
		{none, nm, true, true, false, false, "10.20.0.2", "NetworkManager"},
		{debian, wsl, false, true, false, false, "10.255.255.254", "written by WSL at each start"},
		{fedora, wsl, true, true, true, false, "10.255.255.254", "WSL"},
		{debian, vpn, false, true, false, false, "100.100.100.100", "a VPN client"},
		// Stub in the file, nobody behind it.
		{debian, stub, false, false, false, false, "", "does not run"},
		{fedora, uplink, true, false, false, false, "192.168.20.1", "does not run"},
	} {
		f := Facts{ResolvConf: sample(t, c.conf), NSSwitch: sample(t, c.nss), NSSResolve: c.module, Running: c.running}
		p := Read(f)
		if p.Libc != c.libc || p.Direct != c.direct || p.Leaks != c.leaks || !strings.Contains(p.Cause, c.cause) || (p.Cause == "") != (c.cause == "") {
			t.Errorf("%s, %s, module %v, running %v: %+v", c.nss, c.conf, c.module, c.running, p)
		}
	}
}

func TestReadOrder(t *testing.T) {
	for line, libc := range map[string]bool{
		"hosts: files [NOTFOUND=return] resolve dns":            false,
		"hosts: dns [!UNAVAIL=return] resolve":                  false, // the LAN server's NXDOMAIN ends it
		"hosts: dns resolve":                                    true,  // after the LAN server was asked
		"hosts: mdns4 [NOTFOUND=return] resolve":                true,
		"hosts: files":                                          false,
		"hosts: resolve":                                        true,
		"hosts: files resolve [!UNAVAIL=return] dns":            true,
		"hosts: sss [!SUCCESS=continue] files resolve":          true,
		"hosts: nis [NOTFOUND=return UNAVAIL=continue] resolve": false,
	} {
		p := Read(Facts{ResolvConf: "nameserver 192.0.2.1\n", NSSwitch: line + "\n", NSSResolve: true, Running: true})
		if p.Libc != libc || p.Direct {
			t.Errorf("%s: %+v", line, p)
		}
	}
	p := Read(Facts{ResolvConf: "nameserver 127.0.0.53\n", NSSwitch: "hosts: files\n", NSSResolve: true, Running: true})
	if p.Libc || !p.Direct || !strings.Contains(p.Cause, "nsswitch.conf") {
		t.Errorf("files only: %+v", p)
	}
	p = Read(Facts{ResolvConf: "nameserver 1.2.3.4\x1b[2J\n", Running: true})
	if strings.Contains(p.String(), "\x1b") {
		t.Errorf("escape in %q", p)
	}
}
