package cells

import (
	"strings"

	"github.com/gominimal/minhost/verify/vmlab"
)

const units = "/etc/systemd/system/"

// prepare makes the machine what the cell says, before it boots.
func prepare(m *vmlab.Machine, c cell) {
	managerOf[c.manager](m, c)
	resolverOf[c.resolver](m, c)
	firewallOf[c.firewall](m)
}

func enable(m *vmlab.Machine, target string, names ...string) {
	for _, name := range names {
		m.Link(units+target+".wants/"+name, "/lib/systemd/system/"+name)
	}
}

func mask(m *vmlab.Machine, names ...string) {
	for _, name := range names {
		m.Link(units+name, "/dev/null")
	}
}

const addresses = "address1=" + vmlab.Inside + "/24," + vmlab.Outside + "\ndns=" + vmlab.Outside + ";\n"

var managerOf = map[string]func(*vmlab.Machine, cell){
	"networkd": func(*vmlab.Machine, cell) {},
	"NetworkManager": func(m *vmlab.Machine, c cell) {
		mask(m, "systemd-networkd.service", "systemd-networkd.socket")
		enable(m, "multi-user.target", "NetworkManager.service")
		m.Write("/etc/NetworkManager/system-connections/eth0.nmconnection", "[connection]\nid=eth0\ntype=ethernet\ninterface-name=eth0\n"+
			"[ipv4]\nmethod=manual\n"+addresses+"[ipv6]\nmethod=manual\naddress1="+vmlab.Inside6+"/64,"+vmlab.Outside6+"\n", 0o600)
		// There is no udev here to say that eth0 is ready, and its rules leave veth alone.
		m.Write("/etc/NetworkManager/conf.d/lab.conf", "[device]\nmatch-device=interface-name:eth0\nmanaged=1\n", 0o644)
		if c.resolver == "without stub" {
			m.Write("/etc/NetworkManager/conf.d/dns.conf", "[main]\ndns=systemd-resolved\nrc-manager=unmanaged\n", 0o644)
		}
	},
	"ifupdown": func(m *vmlab.Machine, _ cell) {
		mask(m, "systemd-networkd.service", "systemd-networkd.socket")
		enable(m, "multi-user.target", "networking.service")
		m.Write("/etc/network/interfaces", "auto lo eth0\niface lo inet loopback\niface eth0 inet static\n address "+vmlab.Inside+"/24\n gateway "+vmlab.Outside+
			"\niface eth0 inet6 static\n address "+vmlab.Inside6+"/64\n gateway "+vmlab.Outside6+"\n dad-attempts 0\n", 0o644)
		m.Write("/etc/systemd/resolved.conf.d/lab.conf", "[Resolve]\nDNS="+vmlab.Outside+"\n", 0o644)
	},
}

var plainFile = "nameserver " + vmlab.Outside + "\n"

var resolverOf = map[string]func(*vmlab.Machine, cell){
	"stub": func(*vmlab.Machine, cell) {},
	"without stub": func(m *vmlab.Machine, _ cell) {
		m.Write("/etc/resolv.conf", plainFile, 0o644)
	},
	"none": func(m *vmlab.Machine, _ cell) {
		mask(m, "systemd-resolved.service")
		m.Write("/etc/resolv.conf", plainFile, 0o644)
	},
}

const ruleset = `#!/usr/sbin/nft -f
flush ruleset
table inet filter {
	chain input {
		type filter hook input priority filter; policy drop;
		iif lo accept
		ct state established,related accept
		meta l4proto { icmp, ipv6-icmp } accept
	}
}
`

var firewallOf = map[string]func(*vmlab.Machine){
	"none": func(*vmlab.Machine) {},
	"nftables.service": func(m *vmlab.Machine) {
		m.Write("/etc/nftables.conf", ruleset, 0o755)
		enable(m, "sysinit.target", "nftables.service")
	},
	"firewalld": func(m *vmlab.Machine) {
		enable(m, "multi-user.target", "firewalld.service")
		m.Link(units+"dbus-org.fedoraproject.FirewallD1.service", "/lib/systemd/system/firewalld.service")
	},
	"ufw": func(m *vmlab.Machine) {
		m.Write("/etc/ufw/ufw.conf", "ENABLED=yes\nLOGLEVEL=low\n", 0o644)
		enable(m, "multi-user.target", "ufw.service")
	},
	"docker.io": func(m *vmlab.Machine) {
		// No overlay of an overlay here; images are no matter.
		m.Write("/etc/docker/daemon.json", `{"storage-driver": "vfs"}`+"\n", 0o644)
		enable(m, "multi-user.target", "containerd.service", "docker.service")
		enable(m, "sockets.target", "docker.socket")
	},
}

// up says whether the firewall of the cell has its rules in the kernel, so that a cell that never had it is no
// proof.
func up(m *vmlab.Machine, c cell) bool {
	has := map[string]string{"none": "", "nftables.service": "table inet filter", "firewalld": "table inet firewalld", "ufw": "ufw-user-input", "docker.io": "DOCKER"}[c.firewall]
	return strings.Contains(m.Must("nft", "list", "ruleset").Stdout, has)
}

// told is how verify names it. Docker filters what is forwarded only, which nothing of a box is.
var told = map[string]string{"nftables.service": "nftables (inet filter)", "firewalld": "firewalld (inet firewalld)", "ufw": "ufw (ip"}
