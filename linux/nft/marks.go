package nft

import (
	"cmp"
	"fmt"
	"math/bits"
)

// Marks are the bits of the packet mark and the conntrack mark that the table uses, each one bit
// above the low 16, which hold the lease number. The zero value means DefaultMarks.
type Marks struct {
	// Belt is set on every packet that the table approves. The belt drops a box's packet without it
	// and clears it before the packet leaves.
	Belt uint32
	// Lease in a packet's mark: sent by a box to a local address, the number is the sender's. In a
	// conntrack mark: a flow of the box with the number; without Host, it was admitted to the box.
	Lease uint32
	// Host in a packet's mark: the sender's rules admit the destination as a service of the host.
	// In a conntrack mark, beside Lease: the box with the number started this flow.
	Host uint32
	// Ingress is set on every packet that may reach a box's socket; the belt drops others.
	Ingress uint32
	// Foreign is the belt's alone: it knows sockets of other namespaces by it, where the kernel does not tell.
	Foreign uint32
	// Flow is of conntrack marks alone, so that no packet on which somebody restores its connection's mark has a bit
	// that the belt asks for. With Host: the flow began under a policy of the second generation. Without: a
	// new policy ended it.
	Flow uint32
}

// DefaultMarks returns the bits of DESIGN.md section 2.
func DefaultMarks() Marks {
	return Marks{Belt: 0x40000000, Lease: 0x20000000, Host: 0x10000000, Ingress: 0x08000000, Foreign: 0x04000000, Flow: 0x02000000}
}

// OrDefault fills a zero value.
func (m Marks) OrDefault() Marks {
	if m == (Marks{}) {
		return DefaultMarks()
	}
	return m
}

// Check refuses bits that overlap one another or the lease number.
func (m Marks) Check() error {
	var seen uint32
	for _, b := range m.all() {
		if bits.OnesCount32(b) != 1 || b&0xffff != 0 || seen&b != 0 {
			return fmt.Errorf("marks %#x: each must be one bit of its own above the low 16", m.all())
		}
		seen |= b
	}
	return nil
}

func (m Marks) all() []uint32 { return []uint32{m.Belt, m.Lease, m.Host, m.Ingress, m.Foreign, m.Flow} }

// Bits are all the bits of marks that the table and the belt use, without the lease number.
func (m Marks) Bits() uint32 { return m.Belt | m.Lease | m.Host | m.Ingress | m.Foreign | m.Flow }

// ours is the part of a mark that tells a lease: everything else belongs to other tables.
func (m Marks) ours() uint32 { return m.Lease | m.Host | 0xffff }

// flow is the part of a conntrack mark that tells a live flow of a lease.
func (m Marks) flow() uint32 { return m.ours() | m.Flow }

// Sent is the priority of what a box sends to a local address, but for the bits in vary: Host and the lease
// number.
func (m Marks) Sent() (priority, vary uint32) { return m.Belt | m.Lease, m.Host | 0xffff }

// Admitted is the conntrack mark of flows that were admitted to a box.
func (m Marks) Admitted(number uint16) uint32 { return m.Lease | uint32(number) }

// Started is the conntrack mark of flows that a box started under a policy of this generation. It shares
// a bit with Admitted, so that one scan of the conntrack table finds both.
func (m Marks) Started(number uint16, generation uint8) uint32 {
	mark := m.Lease | m.Host | uint32(number)
	if generation&1 != 0 {
		mark |= m.Generation()
	}
	return mark
}

// Generation is the bit of a started flow's mark that tells the policies before and behind an update apart.
func (m Marks) Generation() uint32 { return m.Flow }

// Ended is what these bits of a conntrack mark are once a new policy ended the flow: whoever still has a socket
// for it is answered with a reset.
func (m Marks) Ended() (set, bits uint32) { return m.Flow, m.Flow | m.Host }

// HasEnded tells it from a flow's mark.
func (m Marks) HasEnded(mark uint32) bool {
	set, bits := m.Ended()
	return mark&bits == set
}

// Either is the mark and mask that find all flows of a box.
func (m Marks) Either(number uint16) (mark, mask uint32) {
	return m.Lease | uint32(number), m.Lease | 0xffff
}

// Config says where the table looks and which numbers it uses.
type Config struct {
	// Boxes is the id (inode of the open directory) of the cgroup whose children are the leaves.
	Boxes uint64
	// Level is the depth of Boxes below the root of the cgroup2 hierarchy: 2 for /minhost/boxes.
	// A wrong level loads and never matches.
	Level int
	// Answerer and BoxView are the answerer's ports on 127.0.0.1; BoxView is on ::1 too.
	Answerer, BoxView uint16
	// Group is the NFLOG group of refused packets.
	Group uint16
	// Flows is how many conntrack entries one box may hold; one process can fill the host's table.
	Flows  uint32
	Marks  Marks
	Planes Planes
	// Node is the id of the cgroup beside Boxes whose children are runners to be counted; 0 for none.
	Node uint64

	flags uint32 // of the table, see NewOwner
}

// normal fills defaults and refuses what would load and silently never match.
func (c Config) normal() (Config, error) {
	c.Marks = c.Marks.OrDefault()
	if err := c.Marks.Check(); err != nil {
		return c, err
	}
	if err := c.Planes.Check(c.Marks); err != nil {
		return c, err
	}
	if c.Boxes == 0 {
		return c, fmt.Errorf("cgroup of the boxes: no id")
	}
	if c.Level < 1 || c.Level > 254 {
		return c, fmt.Errorf("cgroup level %d: must be 1 to 254", c.Level)
	}
	c.Answerer = cmp.Or(c.Answerer, 15353)
	c.BoxView = cmp.Or(c.BoxView, 15354)
	c.Group = cmp.Or(c.Group, 64)
	c.Flows = cmp.Or(c.Flows, 20000)
	return c, nil
}
