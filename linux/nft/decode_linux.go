package nft

import (
	"strings"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// opaque stands for an expression of a kind that our rules never have.
type opaque struct {
	expr.Any
	name string
}

// renderWire renders a rule's expressions as the kernel lists them, as Rule.Text renders wanted ones.
func renderWire(list []byte) (string, error) {
	var parts []string
	err := attributes(list, func(_ uint16, v []byte) error {
		e, err := expression(v)
		if err == nil {
			parts = append(parts, renderExpr(e))
		}
		return err
	})
	return strings.Join(parts, "; "), err
}

// expression reads one with its name.
func expression(v []byte) (expr.Any, error) {
	name, data, err := nameAndData(v)
	if err != nil {
		return nil, err
	}
	return decode(name, data), nil
}

func nameAndData(expression []byte) (name string, data []byte, err error) {
	err = attributes(expression, func(t uint16, v []byte) error {
		switch t {
		case unix.NFTA_EXPR_NAME:
			name = cstring(v)
		case unix.NFTA_EXPR_DATA:
			data = v
		}
		return nil
	})
	return name, data, err
}

// decode reads one expression. What it can't read is opaque, so that a rule of somebody else in our
// table is a difference and not an error.
func decode(name string, data []byte) expr.Any {
	e := empty(name)
	switch e := e.(type) {
	case nil:
		return &opaque{name: name}
	case *expr.Ct:
		if decodeCt(e, data) != nil {
			return &opaque{name: name}
		}
		return e
	}
	if err := expr.Unmarshal(inetFamily, data, e); err != nil {
		return &opaque{name: name}
	}
	// A verdict is an immediate for register 0 without plain data.
	if i, ok := e.(*expr.Immediate); ok && i.Register == unix.NFT_REG_VERDICT && len(i.Data) == 0 {
		v := &expr.Verdict{}
		if err := expr.Unmarshal(inetFamily, data, v); err != nil {
			return &opaque{name: name}
		}
		return v
	}
	return e
}

func empty(name string) expr.Any {
	switch name {
	case "socket":
		return &expr.Socket{}
	case "cmp":
		return &expr.Cmp{}
	case "bitwise":
		return &expr.Bitwise{}
	case "lookup":
		return &expr.Lookup{}
	case "meta":
		return &expr.Meta{}
	case "ct":
		return &expr.Ct{}
	case "payload":
		return &expr.Payload{}
	case "fib":
		return &expr.Fib{}
	case "exthdr":
		return &expr.Exthdr{}
	case "immediate":
		return &expr.Immediate{}
	case "dynset":
		return &expr.Dynset{}
	case "reject":
		return &expr.Reject{}
	case "redir":
		return &expr.Redir{}
	case "nat":
		return &expr.NAT{}
	case "log":
		return &expr.Log{}
	case "counter":
		return &expr.Counter{}
	}
	return nil
}

// decodeCt reads a conntrack expression. The library does not read the source register, and expects
// four bytes where the kernel lists a direction of one.
func decodeCt(e *expr.Ct, data []byte) error {
	return attributes(data, func(t uint16, v []byte) error {
		switch t {
		case unix.NFTA_CT_KEY:
			e.Key = expr.CtKey(num(v))
		case unix.NFTA_CT_DREG:
			e.Register = num(v)
		case unix.NFTA_CT_SREG:
			e.Register, e.SourceRegister = num(v), true
		case unix.NFTA_CT_DIRECTION:
			if len(v) > 0 {
				e.Direction = uint32(v[0])
			}
		}
		return nil
	})
}
