package nft

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// feature is something of nf_tables that the table needs, as the smallest ruleset that shows it.
type feature struct {
	// lacks is what is missing, in words and as the kernel's option; serves what the table needs it for.
	lacks, serves string
	hook          string // type of the base chain; "" for no chain
	sets          []string
	rules         []Rule
}

// features in the order in which they depend on one another.
func (b builder) features() []feature {
	one := func(parts ...[]expr.Any) []Rule { return []Rule{rule(parts...)} }
	return []feature{
		{lacks: "nf_tables (CONFIG_NF_TABLES, CONFIG_NF_TABLES_INET)", serves: "to exist"},
		{"matching packets by cgroup (CONFIG_NFT_SOCKET with cgroup2, Linux 5.13)", "to know a box", "filter", nil, one(b.inBoxes(), accept())},
		{"sets of ranges joined with other fields (Linux 5.6)", "to keep lists of rules", "", []string{setAllow4, setAllow6, setInAny}, nil},
		{"maps from a cgroup to a mark", "to tell boxes apart", "filter", []string{setLease}, one(b.setMark(setLease))},
		{"connection tracking in rules (CONFIG_NFT_CT)", "to know replies and where a flow was sent first", "filter", nil, one(ctState(expr.CtStateBitESTABLISHED), accept())},
		{"the kind of an address in rules (CONFIG_NFT_FIB_INET)", "to know multicast and local addresses", "filter", nil, one(daddrIs(addrLocal), accept())},
		{"answers to refused packets (CONFIG_NFT_REJECT_INET)", "to refuse at once", "filter", nil, b.answer(unix.NFT_REJECT_ICMPX_ADMIN_PROHIBITED)},
		{"redirection (CONFIG_NFT_NAT, CONFIG_NFT_REDIR)", "to answer lookups of confined boxes", "nat", []string{setPolicy}, []Rule{b.toBoxView()}},
		{"counting the flows of a cgroup (CONFIG_NFT_CONNLIMIT)", "to keep one box from filling the host's connection table", "filter", []string{setFlows}, one(b.tooMany(), accept())},
		{"a rate for each lease (CONFIG_NFT_LIMIT)", "to tell the refusals of one box beside another's", "filter", []string{setNoise}, one(b.ourMark(r0), []expr.Any{b.bucket()})},
		{"messages to a program (CONFIG_NFT_LOG, CONFIG_NETFILTER_NETLINK_LOG)", "to tell refusals", "filter", nil, one([]expr.Any{b.nflog(prefixOut)})},
		{"IPv6 extension headers in rules (CONFIG_NFT_EXTHDR)", "to refuse IPv6 routing headers", "filter", nil, one(ipv6(), routingHeader(), accept())},
	}
}

// Missing tries everything that the table needs in a throw-away network namespace, never by the kernel's
// version, and returns one sentence for each that is missing. It needs root.
func Missing(ctx context.Context) ([]string, error) {
	var out []string
	err := apart(func() (err error) {
		c, err := dial(nil)
		if err != nil {
			return err
		}
		defer c.close()
		out, err = missing(ctx, c, builder{Config{Boxes: 1, Level: 1, BoxView: 1, Flows: 1, Marks: DefaultMarks()}}.features())
		return err
	})
	return out, err
}

func missing(ctx context.Context, c *conn, all []feature) (out []string, err error) {
	for _, f := range all {
		err := c.send(ctx, f.batch())
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		if err != nil {
			out = append(out, fmt.Sprintf("this kernel has no %s, which the table needs %s (%v)", f.lacks, f.serves, err))
		}
		var b batch
		b.delTable()
		if err := c.send(ctx, &b); err != nil && !errors.Is(err, unix.ENOENT) {
			return out, fmt.Errorf("try features: %w", err)
		}
	}
	return out, nil
}

func (f feature) batch() *batch {
	b := &batch{}
	b.addTable(0)
	for _, s := range emptySets() {
		for _, name := range f.sets {
			if s.Name == name {
				b.addSet(s)
			}
		}
	}
	if f.hook != "" {
		b.addChain(Chain{Name: "try", Hook: &Hook{f.hook, unix.NF_INET_LOCAL_OUT, priorityNAT}})
	}
	for _, r := range f.rules {
		b.addRule("try", r)
	}
	return b
}

// apart runs f on a thread in a network namespace of its own, which ends with it.
func apart(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
		if unix.Gettid() == unix.Getpid() {
			// The main thread does not end: it would show its namespace as the process's for ever.
			defer runtime.UnlockOSThread()
			done <- apart(f)
			return
		}
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("a network namespace to try things in: %w", err)
			return
		}
		done <- f()
	}()
	return <-done
}
