package fakedarwin

import (
	"encoding/json"
	"net"
)

// Socket is where the model listens for its programs, from the model's root.
const Socket = "/.model.sock"

// Call is one run of a program of the model.
type Call struct {
	Name  string   // as it was called: "ifconfig"
	Args  []string // without the name
	Stdin []byte
	uid   uint32 // of the caller, from the kernel
}

// Answer is what it prints and how it ends.
type Answer struct {
	Code           int
	Stdout, Stderr string
}

// Programs of the model by the paths that every Mac has.
var Programs = [...]string{
	"/sbin/ifconfig", "/bin/launchctl", "/usr/sbin/scutil", "/usr/bin/dscacheutil", "/usr/bin/killall", "/usr/sbin/sysctl",
	"/usr/bin/sw_vers", "/usr/bin/plutil", "/usr/bin/sudo", "/usr/bin/id", "/usr/sbin/netstat", "/usr/bin/shasum",
	// What packaging/darwin/verify-on-a-mac.sh looks with.
	"/usr/bin/uname", "/usr/bin/xattr", "/usr/bin/codesign", "/usr/bin/profiles", "/bin/ps", "/sbin/ping", "/usr/sbin/lsof", "/usr/bin/stat",
	"/usr/bin/dig", "/usr/bin/curl", "/usr/bin/open", "/bin/ls",
}

// Ask is what a program of the model does, from inside its root.
func Ask(call Call) (answer Answer, err error) {
	c, err := net.Dial("unix", Socket)
	if err != nil {
		return answer, err
	}
	defer c.Close()
	if err := json.NewEncoder(c).Encode(call); err != nil {
		return answer, err
	}
	return answer, json.NewDecoder(c).Decode(&answer)
}
