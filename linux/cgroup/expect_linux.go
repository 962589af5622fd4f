package cgroup

import (
	"fmt"
	"os"
)

// ExpectMove makes a move that follows within some milliseconds a quick one, and changes nothing. It takes as long as
// a move does.
//
// What a move takes is the wait for an RCU grace period: whoever writes to cgroup.procs keeps all forks and exits of
// the host out for an instant, and the first to do so has to wait until every processor has seen that they may be
// kept out (cgroup_threadgroup_rwsem; 4 to 12 ms at 250 Hz, the write itself 0.05 ms, Linux 6.18). For about as
// long behind it a further one need not wait (rcu_sync). So this is such a write: it puts the caller into the cgroup
// that it is in. The mount option favordynmods takes the wait away as well, but at the cost of every fork of the host.
func (t *Tree) ExpectMove() error {
	pid := os.Getpid()
	group, err := t.GroupOf(pid)
	if err != nil {
		return err
	}
	d, leave, err := t.group(group)
	if err != nil {
		return fmt.Errorf("expect a move: %w", err)
	}
	defer leave()
	return move(d, pid)
}
