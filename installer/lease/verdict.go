package lease

import "net/netip"

// Verdict is what the kernel must hold for one box: the wanted state of the table.
type Verdict struct {
	// Leaf is the id of the box's cgroup: the inode of the open directory, never of a path
	// looked up again.
	Leaf uint64
	// Number is the lease number, 1 to 65535, in the low 16 bits of packet and ct marks.
	Number uint16
	// Address is the box's own loopback address; invalid for a box without one.
	Address netip.Addr
	Policy  Policy
	// Cutting: the policy is new, and flows of an older one are being ended.
	Cutting bool
}
