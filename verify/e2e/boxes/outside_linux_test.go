package boxes

import "github.com/gominimal/minhost/verify/netlab"

// outside is another host.
type outside struct{ *netlab.Outside }

func (h *host) outside() *outside {
	h.Helper()
	return &outside{netlab.NewOutside(h)}
}

func (o *outside) near4() string { return o.Near }
func (o *outside) far4() string  { return o.Far }
func (o *outside) near6() string { return o.Near6 }
func (o *outside) far6() string  { return o.Far6 }

func (o *outside) do(f func())                         { o.Do(f) }
func (o *outside) echo(network, address string) string { return o.Echo(network, address) }

// dial reaches from the other host.
func (o *outside) dial(network, address string) netlab.Outcome {
	return o.Dial(netlab.Dial{Network: network, Address: address})
}
