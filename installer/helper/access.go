package helper

import (
	"context"
	"fmt"

	"github.com/gominimal/minhost/installer/api"
	"github.com/varlink/go/varlink"
)

// who may call a method.
type who int

const (
	nobody    who = iota // no rule, no call
	rootOnly             // uid 0, not in a leaf
	operators            // operators and root, not in a leaf
	insiders             // operators and root; inside a leaf for the own box only
)

// method is a row of the one access table.
type method struct {
	who who
	run func(h *Helper, ctx context.Context, c *caller, call *varlink.Call) error
}

// methods is every method of the interface. TestAccess holds a copy of the first column, so that
// a loosened rule breaks a test that names it.
func methods() map[string]method {
	return map[string]method{
		"Plan":     {operators, unary((*Helper).plan)},
		"Attach":   {operators, unary((*Helper).attach)},
		"Join":     {operators, unary((*Helper).join)},
		"Listen":   {operators, unary((*Helper).listen)},
		"Update":   {operators, unary((*Helper).update)},
		"Adopt":    {operators, unary((*Helper).adopt)},
		"Abandon":  {operators, unary((*Helper).abandon)},
		"Teardown": {operators, unary((*Helper).teardown)},
		"List":     {operators, unary((*Helper).list)},
		"Status":   {operators, unary((*Helper).status)},
		"Verify":   {operators, unary((*Helper).verify)},
		"Count":    {operators, unary((*Helper).count)},
		"Explain":  {insiders, unary((*Helper).explain)},
		"Watch":    {operators, (*Helper).watch},
		"Repair":   {rootOnly, unary((*Helper).repair)},
	}
}

// caller is one call's identity, from the kernel.
type caller struct {
	*conn
	method string
	// leaf is the lease id of the leaf that the peer is in; "" outside.
	leaf string
}

func (c *caller) root() bool { return c.peer.UID == 0 }

// admit applies the rule of a method to the peer of a connection.
func (h *Helper) admit(rule who, name string, c *conn) (*caller, error) {
	leaf, err := h.leafOf(c.peer)
	if err != nil {
		return nil, refuse(name, "who calls cannot be told: "+err.Error(), "open a new connection from a live process")
	}
	if leaf != "" && rule != insiders {
		return nil, refuse(name, "a process inside a box may only ask Explain about its own box", "call from outside the box")
	}
	ok := c.peer.UID == 0
	if !ok && rule != rootOnly && rule != nobody {
		if ok, err = h.cfg.Operators(c.peer); err != nil {
			return nil, internal("operators", err)
		}
	}
	switch {
	case rule == nobody:
		return nil, refuse(name, "nobody may call "+name, "")
	case !ok && rule == rootOnly:
		return nil, refuse(name, fmt.Sprintf("uid %d is not root", c.peer.UID), "call as root")
	case !ok:
		return nil, refuse(name, fmt.Sprintf("uid %d is not an operator", c.peer.UID), "as root: minhost operator add USER")
	}
	return &caller{conn: c, method: name, leaf: leaf}, nil
}

// leafOf reads the leaf of a peer by its pid. That may be somebody else's by now, but not if the peer is alive
// behind the reading: then it was its own all the time.
func (h *Helper) leafOf(p Peer) (string, error) {
	leaf, err := h.cfg.Tree.LeafOf(p.PID)
	if err != nil {
		return "", err
	}
	return leaf, p.Alive()
}

func refuse(method, message, next string) error {
	return &api.NotAllowed{Method: method, Message: message, Next: next}
}
