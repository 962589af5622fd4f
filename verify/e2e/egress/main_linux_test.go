package egress

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/e2e/rig"
	"github.com/gominimal/minhost/verify/netlab"
)

func TestMain(m *testing.M) {
	// The main thread stays this goroutine's: those of others that change their namespace end with them.
	runtime.LockOSThread()
	os.Exit(rig.Main(m, nil, netlab.Children{"agent": agentMain}))
}

// order is one line to an agent: "serve", "dial", "hold" and "talk" a flow, "count", "transfer", "probe" and "halt".
type order struct {
	Op      string
	Network string
	Address string
	Targets []netlab.Dial
}

// agentMain does in a box what the test asks for, one order a line, until its input ends. It opens
// nothing before.
func agentMain([]string) int {
	fmt.Println("ready")
	held := map[string]net.Conn{}
	var p *prober
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			fmt.Println(err)
			return 1
		}
		var out any
		key := o.Network + " " + o.Address
		switch o.Op {
		case "serve":
			out = serve(o.Network, o.Address)
		case "dial":
			out = netlab.Dial{Network: o.Network, Address: o.Address}.Do()
		case "hold":
			c, err := net.DialTimeout(o.Network, o.Address, time.Second)
			if held[key] = c; err != nil {
				out = word(err)
				break
			}
			out = talk(c)
		case "talk":
			out = talk(held[key])
		case "count":
			out = count()
		case "transfer":
			out = transfer(o.Network, o.Address)
		case "probe":
			p, out = probe(o.Targets), "probing"
		case "reached":
			out = p.reached()
		case "halt":
			out = p.halt()
		}
		line, _ := json.Marshal(out)
		fmt.Println(string(line))
	}
	return 0
}

// tally is what a prober found for each destination.
type tally struct{ Tried, Reached map[string]int }

// prober tries destinations without a pause, each in a loop of its own.
type prober struct {
	stop chan struct{}
	work sync.WaitGroup
	mu   sync.Mutex
	tally
}

func probe(targets []netlab.Dial) *prober {
	p := &prober{stop: make(chan struct{}), tally: tally{map[string]int{}, map[string]int{}}}
	for _, d := range targets {
		p.work.Go(func() {
			for {
				select {
				case <-p.stop:
					return
				case <-time.After(5 * time.Millisecond): // two cores are shared by all that runs here
				}
				ok := d.Do().OK()
				p.mu.Lock()
				p.Tried[d.Network+" "+d.Address]++
				if ok {
					p.Reached[d.Network+" "+d.Address]++
				}
				p.mu.Unlock()
			}
		})
	}
	return p
}

// reached counts all successes until now.
func (p *prober) reached() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.Reached {
		n += m
	}
	return n
}

func (p *prober) halt() tally {
	close(p.stop)
	p.work.Wait()
	return p.tally
}
