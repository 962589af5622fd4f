package lease

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func usable(netip.Addr) error { return nil }

func TestPickOrder(t *testing.T) {
	now := time.Now()
	a := func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 64, n}) }
	held, released := map[netip.Addr]bool{}, map[netip.Addr]time.Time{}
	for n := byte(1); n <= 253; n++ {
		released[a(n)] = now.Add(-time.Duration(n) * time.Second)
	}
	if got, _ := Pick(held, released, usable); got != a(253) {
		t.Errorf("least recently released: %s", got)
	}
	delete(released, a(7))
	if got, _ := Pick(held, released, usable); got != a(7) {
		t.Errorf("never given goes first: %s", got)
	}
	held[a(7)] = true
	busy := func(x netip.Addr) error {
		if x == a(253) {
			return errors.New("bound")
		}
		return nil
	}
	if got, _ := Pick(held, released, busy); got != a(252) {
		t.Errorf("an address with a socket is passed over: %s", got)
	}
	cause := errors.New("not there")
	if _, err := Pick(nil, nil, func(netip.Addr) error { return cause }); !errors.Is(err, ErrRangeFull) || !errors.Is(err, cause) {
		t.Errorf("no usable address: %v", err)
	}
}

// TestPickQuarantine: an address is never given within 90 s of its release while another one, not
// so fresh, is free.
func TestPickQuarantine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1<<30, 0)
		held, released := map[netip.Addr]bool{}, map[netip.Addr]time.Time{}
		var rested int
		for a := first; !last.Less(a); a = a.Next() {
			switch rapid.IntRange(0, 3).Draw(t, "fate") {
			case 0:
				held[a] = true
			case 1:
				released[a] = now.Add(-time.Duration(rapid.IntRange(0, 89).Draw(t, "s")) * time.Second)
			default:
				released[a] = now.Add(-time.Duration(rapid.IntRange(90, 9000).Draw(t, "s")) * time.Second)
				rested++
			}
		}
		got, err := Pick(held, released, usable)
		if err != nil {
			return
		}
		if held[got] || !InRange(got) {
			t.Fatalf("%s is held or outside", got)
		}
		if rested > 0 && now.Sub(released[got]) < 90*time.Second {
			t.Fatalf("%s was released %s ago, and %d others rested", got, now.Sub(released[got]), rested)
		}
	})
}
