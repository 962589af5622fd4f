package bench

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
	"github.com/gominimal/minhost/verify/e2e/rig"
	"github.com/gominimal/minhost/verify/netlab"
)

// heldChild says that it is there and waits for its end.
func heldChild([]string) int {
	fmt.Println("held")
	os.Stdin.Read(make([]byte, 1))
	return 0
}

// BenchmarkAttach is Plan and Attach at so many live boxes, next to the kernel's own part in the same
// run: mkdir, cgroup.procs, one batch with one set element; next to a network namespace with a veth pair, and
// next to the CNI bridge plugin, where it is installed.
func BenchmarkAttach(b *testing.B) {
	for _, live := range []int{0, 100, 250} {
		b.Run(fmt.Sprintf("live=%d", live), func(b *testing.B) {
			rig.Install(b)
			defer rig.Undo(b)
			c := dial(b)
			defer c.Close()
			for range live {
				x := newBox(b, c, api.Policy{Egress: api.EgressDeny})
				defer x.end(context.Background())
			}
			b.Run("row", func(b *testing.B) { benchAttach(b, c, 0) })
			b.Run("alone", func(b *testing.B) { benchAttach(b, c, grace) })
		})
	}
}

// grace is longer than any wait of the kernel that an earlier move is the cause of, and within which the next one is a
// quick one (rcu_sync, 4 to 12 ms at 250 Hz): behind it a start is what a person sees who starts one box.
const grace = 100 * time.Millisecond

// benchAttach starts boxes, each so long after what was before it.
func benchAttach(b *testing.B, c *client.Client, rest time.Duration) {
	floor, nets, plugin := newFloor(b), newNets(b), newPlugin(b)
	var ours, ending, kernel, veth, vethEnding, cni, cniEnding spread
	for i := 0; b.Loop(); i++ {
		// In turn: a move waits for an RCU grace period, and what came before decides how long.
		for j := range 2 {
			child := netlab.Start(b, netlab.Spawn{Leaf: netlab.NoLeaf}, "held")
			child.Line()
			time.Sleep(rest)
			if (i+j)%2 == 0 {
				attach, teardown := cycle(b, c, child.PID())
				ours, ending = append(ours, attach), append(ending, teardown)
				child.Kill()
				continue
			}
			kernel = append(kernel, floor.once(child.PID()))
			child.Kill()
			floor.clear()
		}
		time.Sleep(rest)
		made, removed := nets.once(i)
		veth, vethEnding = append(veth, made), append(vethEnding, removed)
		if plugin != nil && i%4 == 0 { // it is slow
			made, removed = plugin.once(i)
			cni, cniEnding = append(cni, made), append(cniEnding, removed)
		}
	}
	for _, s := range []struct {
		name string
		made spread
	}{{"plan+attach", ours}, {"teardown", ending}, {"kernel", kernel}, {"veth", veth}, {"veth-end", vethEnding}, {"cni", cni}, {"cni-end", cniEnding}} {
		s.made.report(b, s.name)
	}
	ratio(b, ours, kernel, "x-kernel")
	ratio(b, ours, veth, "x-veth")
	ratio(b, ours, cni, "x-cni")
	ratio(b, ending, vethEnding, "x-veth-end")
}

// ratio reports how many times as long as the other one of these takes, at the median and on average: what takes
// either of two times, as a move does, has no median to speak of.
func ratio(b *testing.B, ours, other spread, name string) {
	if len(other) > 0 {
		b.ReportMetric(float64(ours.at(.5))/float64(other.at(.5)), name)
		b.ReportMetric(float64(ours.mean())/float64(other.mean()), name+"-mean")
	}
}

// cycle times one life of a box.
func cycle(b *testing.B, c *client.Client, pid int) (attach, teardown time.Duration) {
	x := box{b: b, c: c}
	start := time.Now()
	x.attach(api.Policy{Egress: api.EgressDeny}, pid)
	attach = time.Since(start)
	start = time.Now()
	x.end(context.Background())
	return attach, time.Since(start)
}

// floor does what no helper can do without.
type floor struct {
	b    *testing.B
	dir  string
	conn *nftables.Conn
	set  *nftables.Set
}

func newFloor(b *testing.B) *floor {
	conn, err := nftables.New(nftables.AsLasting())
	if err != nil {
		b.Fatal(err)
	}
	table := conn.AddTable(&nftables.Table{Name: "floor", Family: nftables.TableFamilyINet})
	set := &nftables.Set{Table: table, Name: "s", KeyType: nftables.TypeCGroupV2, KeyByteOrder: binaryutil.NativeEndian}
	if err := conn.AddSet(set, nil); err != nil {
		b.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		conn.DelTable(table)
		if err := conn.Flush(); err != nil {
			b.Error(err)
		}
		conn.CloseLasting()
	})
	return &floor{b: b, dir: "/sys/fs/cgroup/floor", conn: conn, set: set}
}

func (f *floor) once(pid int) time.Duration {
	start := time.Now()
	if err := os.Mkdir(f.dir, 0o755); err != nil {
		f.b.Fatal(err)
	}
	info, err := os.Stat(f.dir)
	if err != nil {
		f.b.Fatal(err)
	}
	id := binaryutil.NativeEndian.PutUint64(info.Sys().(*syscall.Stat_t).Ino)
	if err := f.conn.SetAddElements(f.set, []nftables.SetElement{{Key: id}}); err != nil {
		f.b.Fatal(err)
	}
	if err := f.conn.Flush(); err != nil {
		f.b.Fatal(err)
	}
	if err := os.WriteFile(f.dir+"/cgroup.procs", []byte(strconv.Itoa(pid)), 0); err != nil {
		f.b.Fatal(err)
	}
	return time.Since(start)
}

func (f *floor) clear() {
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		err := os.Remove(f.dir)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			f.b.Fatal(err)
		}
	}
}
