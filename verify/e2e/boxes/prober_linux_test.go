package boxes

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/gominimal/minhost/verify/netlab"
)

// probed is what a prober saw: attempts from inside a leaf, and those of them that got through.
type probed struct {
	Attempts, Reached int
	First             string // the first that got through
}

// proberMain tries to reach an address by TCP and UDP all the time that it is in a leaf. Outside it opens
// nothing: it is held then. An attempt counts that begins and ends in the same leaf. A line on its input
// asks for the counts.
func proberMain(args []string) int {
	var mu sync.Mutex
	var seen probed
	go func() {
		for i := 0; ; i++ {
			before := ownLeaf()
			if before == "" {
				time.Sleep(200 * time.Microsecond)
				continue
			}
			network := []string{"tcp", "udp"}[i%2]
			o := netlab.Dial{Network: network, Address: args[0], Timeout: 100 * time.Millisecond}.Do()
			if ownLeaf() != before {
				continue
			}
			mu.Lock()
			seen.Attempts++
			if o.OK() {
				seen.Reached++
				if seen.First == "" {
					seen.First = fmt.Sprintf("%s %s from %s at %v: %v", network, args[0], before, time.Now().Format(time.StampMilli), o)
				}
			}
			mu.Unlock()
		}
	}()
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		mu.Lock()
		b, _ := json.Marshal(seen)
		mu.Unlock()
		fmt.Println(string(b))
	}
	return 0
}

func ownLeaf() string {
	b, _ := os.ReadFile("/proc/self/cgroup")
	if at := strings.Index(string(b), "/minhost/boxes/"); at >= 0 {
		return strings.TrimSpace(string(b)[at:])
	}
	return ""
}

// prober starts one, held. Its address answers.
func (h *host) prober(address string) *agent {
	h.Helper()
	a := &agent{h, netlab.Start(h, netlab.Spawn{Leaf: netlab.NoLeaf, UID: operatorUID}, "prober", address)}
	a.Line()
	return a
}

// probed asks a prober that lives.
func (a *agent) probed() (p probed) {
	a.TB.Helper()
	a.Say("?")
	if err := json.Unmarshal([]byte(a.Line()), &p); err != nil {
		a.Fatal(err)
	}
	return p
}
