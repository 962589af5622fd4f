package helper

import (
	"context"
	"net/netip"
	"os"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// Tree is the cgroup tree (linux/cgroup). Names of leaves are lease ids.
type Tree interface {
	// Create makes the leaf boxes/<id>; fs.ErrExist when it is there already.
	Create(id string) (Leaf, error)
	// Open opens an existing leaf; fs.ErrNotExist when there is none.
	Open(id string) (Leaf, error)
	// List names the leaves that exist.
	List() ([]string, error)
	// LeafOf names the leaf that a process is in, sub-cgroups included; "" when it is in none.
	LeafOf(pid int) (string, error)
	// GroupOf returns the path of a process's cgroup, for Restore.
	GroupOf(pid int) (string, error)
	// Restore puts a process back to where GroupOf found it.
	Restore(pid int, group string) error
}

// Leaf is one box's cgroup, held open: it keeps meaning the same directory.
type Leaf interface {
	// ID is the inode of the open directory, which the table matches.
	ID() uint64
	// Path is for display and for the runner; never opened again by the helper.
	Path() string
	// IDs are the ids of the leaf and of every cgroup below it.
	IDs() ([]uint64, error)
	// Move puts a process with all its threads into the leaf.
	Move(pid int) error
	// Pids lists the processes in the leaf and below it.
	Pids() ([]int, error)
	// Populated reads cgroup.events.
	Populated() (bool, error)
	// WaitEmpty returns nil once the leaf has no process, or the context's error.
	WaitEmpty(ctx context.Context) error
	// Kill writes cgroup.kill.
	Kill() error
	// Remove removes the directory and those below it; syscall.EBUSY while processes live.
	Remove() error
	Close() error
}

// Table is the one nftables table (linux/nft) with the belt beside it. All calls are one batch.
type Table interface {
	// Put makes the table hold this verdict for v.Leaf, replacing an older one.
	Put(ctx context.Context, v lease.Verdict) error
	// Refuse takes a leaf out of the table: nothing that its processes send passes from then on. No error
	// when it is not in it.
	Refuse(ctx context.Context, v lease.Verdict) error
	// Delete does what Refuse does and removes the conntrack entries of its flows, for which the kernel walks
	// all of them (8 ms with 262,144 buckets).
	Delete(ctx context.Context, v lease.Verdict) error
	// Refill makes table, chains and sets hold exactly these verdicts.
	Refill(ctx context.Context, all []lease.Verdict) error
	// Compare reads the kernel and says, one line each, what differs from these verdicts.
	Compare(ctx context.Context, all []lease.Verdict) ([]string, error)
	// Changed receives a value when somebody else changed or removed the table.
	Changed() <-chan struct{}
	// Refusals counts packets that were refused to boxes since the table was filled, and those of them
	// that were told to Refusals.
	Refusals(ctx context.Context) (refused, told uint64, err error)
	// Traffic tells what passed, by who sent and received it.
	Traffic(ctx context.Context) (lease.Planes, error)
	// Elements is the number of set elements that the verdicts cost together.
	Elements(all []lease.Verdict) int
}

// Flows ends live flows (linux/cut).
type Flows interface {
	// Connected tells whether a connected socket lives that was made in one of these cgroups.
	Connected(ctx context.Context, groups []uint64) (bool, error)
	// Cut ends every flow of a box that its verdict does not admit, so that both ends are told, and says
	// how many. groups are the ids of the leaf and below it; owner tells the lease number of the box
	// that a cgroup is in, 0 for none.
	Cut(ctx context.Context, v lease.Verdict, groups []uint64, place lease.Place, owner func(cgroup uint64) uint16) (int, error)
	// End destroys the sockets that were made in these cgroups, whoever holds them, and says how many.
	End(ctx context.Context, groups []uint64) (int, error)
}

// Refused is one refused packet of a box, as NFLOG told it.
type Refused struct {
	Number   uint16 // lease number of the sender
	Protocol string // "tcp", "udp", "icmp", or the number
	To       netip.AddrPort
	Inbound  bool // refused on the way into another box or service
}

// Refusals is the stream of refused packets (linux/nft, group 64).
type Refusals interface {
	// Drain reads everything that the kernel has queued until now and calls the handler given
	// at construction; when it returns, earlier refusals have been handled.
	Drain()
	// Lost is how often refusals that were told were not read in time.
	Lost() uint64
}

// Names publishes the zone (resolverd/zonefile).
type Names interface {
	// Publish replaces the zone by these names. Atomic.
	Publish(names map[string]netip.Addr) error
}

// Range tells whether an address of the range can be used.
type Range interface {
	// Free fails when the address cannot be bound or when a socket is still bound to it.
	Free(addr netip.Addr) error
}

// Processes opens processes by a handle that a reused pid can't fool (linux/proc).
type Processes interface {
	// Open takes a pid; fs.ErrNotExist when there is no such process.
	Open(pid int) (Process, error)
	// FromFD takes a pidfd, and closes it when it fails.
	FromFD(f *os.File) (Process, error)
}

// Process is one process, held by its pidfd.
type Process interface {
	PID() int
	// Alive says whether it still runs (a zombie does not).
	Alive() bool
	// Fit says whether it may be put into a leaf: its four uids are uid (unless anyUID), it is in our pid
	// namespace, it has no children, and it holds no socket but AF_UNIX and AF_NETLINK ones. The
	// error is an *Unfit, or one of reading.
	Fit(uid uint32, anyUID bool) error
	// Childless says whether it has no child now.
	Childless() (bool, error)
	// Children lists its children, zombies too.
	Children() ([]int, error)
	// Pin keeps the number of the process its own until unpin, although it may die meanwhile. The caller looks
	// at Alive behind it: a process that is dead then had lost its number before.
	Pin() (unpin func(), err error)
	// Kill sends SIGKILL through the handle.
	Kill() error
	Close() error
}

// Unfit says why a process may not be put into a leaf: uid, pidns, children, socket, io_uring.
type Unfit struct{ Reason, Text string }

func (e *Unfit) Error() string { return e.Text }

// Checker makes the checks of Verify that need root and know the kernel: tree, belt, self-test.
type Checker interface {
	Checks(ctx context.Context) []api.Check
}
