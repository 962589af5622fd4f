package lease

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// record is the durable form: additive changes only, old fields keep their meaning.
type record struct {
	Schema            string    `json:"schema"`
	BootID            string    `json:"boot_id"`
	ID                string    `json:"id"`
	Number            uint16    `json:"number"`
	UID               uint32    `json:"uid"`
	Name              string    `json:"name,omitempty"`
	Address           string    `json:"address,omitempty"`
	Egress            Egress    `json:"egress"`
	Rules             []stored  `json:"rules,omitempty"`
	DenySubnets       []string  `json:"deny_subnets,omitempty"`
	Ingress           Ingress   `json:"ingress"`
	IngressPorts      []uint16  `json:"ingress_ports,omitempty"`
	IngressBoxes      []string  `json:"ingress_boxes,omitempty"`
	State             State     `json:"state"`
	SecretHash        string    `json:"secret_sha256"`
	EndWithConnection bool      `json:"end_with_connection,omitempty"`
	Mode              Mode      `json:"mode,omitempty"` // absent: host
	OwnLocalhost      bool      `json:"own_localhost,omitempty"`
	TapAddress        string    `json:"tap_address,omitempty"`
	TapGateway        string    `json:"tap_gateway,omitempty"`
	TapMTU            int       `json:"tap_mtu,omitempty"`
	TapName           string    `json:"tap_name,omitempty"`
	NetNS             uint64    `json:"netns,omitempty"`
	Attempt           string    `json:"attempt,omitempty"`
	Unenforced        bool      `json:"unenforced,omitempty"`
	Strict            bool      `json:"strict,omitempty"`
	Cutting           bool      `json:"cutting,omitempty"`
	Generation        uint8     `json:"generation,omitempty"`
	Since             time.Time `json:"since"`
}

type stored struct {
	To       string   `json:"to"`
	Ports    string   `json:"ports,omitempty"`
	Protocol Protocol `json:"protocol"`
	Until    string   `json:"until,omitempty"`
}

// Encode returns the durable form of a lease of this boot.
func Encode(l Lease, bootID string) ([]byte, error) {
	r := record{
		Schema: schema, BootID: bootID, ID: l.ID, Number: l.Number, UID: l.UID, Name: l.Name,
		Egress: l.Policy.Egress, Ingress: l.Policy.Ingress, IngressPorts: l.Policy.IngressPorts, IngressBoxes: l.Policy.IngressBoxes,
		State: l.State, SecretHash: hex.EncodeToString(l.SecretHash[:]),
		EndWithConnection: l.EndWithConnection, Unenforced: l.Unenforced, Strict: l.Strict, Cutting: l.Cutting, Generation: l.Generation, Since: l.Since,
		Mode: l.Mode, OwnLocalhost: l.OwnLocalhost, NetNS: l.NetNS, Attempt: l.Attempt,
	}
	if l.Tap != (Tap{}) {
		r.TapAddress, r.TapGateway, r.TapMTU, r.TapName = l.Tap.Address.String(), l.Tap.Gateway.String(), l.Tap.MTU, l.Tap.Name
	}
	if l.Address.IsValid() {
		r.Address = l.Address.String()
	}
	for _, x := range l.Policy.Rules {
		r.Rules = append(r.Rules, stored{x.Target(), x.Ports(), x.Protocol, x.Ends()})
	}
	for _, p := range l.Policy.DenySubnets {
		r.DenySubnets = append(r.DenySubnets, p.String())
	}
	b, err := json.Marshal(r)
	return append(sealed(b), '\n'), err
}

// sealed puts the sum of an object before its first field: a flipped bit may leave a record that reads well, and
// takes a denied subnet away. Earlier versions pass the field over.
func sealed(object []byte) []byte {
	return append(fmt.Appendf(nil, `{"sum":"%x",`, sha256.Sum256(object)), object[1:]...)
}

// unsealed returns the object if its sum fits it. Records of before 0.3 have none.
func unsealed(b []byte) ([]byte, error) {
	b = bytes.TrimSuffix(b, []byte{'\n'})
	if bytes.HasPrefix(b, []byte(`{"schema":`)) {
		return b, nil
	}
	if n := len(sealed([]byte("{"))); len(b) > n {
		if object := append([]byte("{"), b[n:]...); bytes.Equal(b, sealed(object)) {
			return object, nil
		}
	}
	return nil, errors.New("lease record: it is not what was written")
}

// Decode reads the durable form. Every field is checked again: the file may have been cut or
// changed. A record of another boot is an error, since no cgroup of it can be alive.
func Decode(b []byte, bootID string) (Lease, error) {
	object, err := unsealed(b)
	if err != nil {
		return Lease{}, err
	}
	var r record
	if err := json.Unmarshal(object, &r); err != nil {
		return Lease{}, fmt.Errorf("lease record: %w", err)
	}
	switch {
	case r.Schema != schema:
		return Lease{}, fmt.Errorf("lease record: schema %q is not %q", r.Schema, schema)
	case r.BootID != bootID:
		return Lease{}, fmt.Errorf("lease record: of another boot")
	case !ValidID(r.ID) || r.Number == 0:
		return Lease{}, fmt.Errorf("lease record: id %q, number %d", r.ID, r.Number)
	case r.State != Attaching && r.State != Attached && r.State != Ending:
		return Lease{}, fmt.Errorf("lease record: state %q", string(r.State))
	}
	l := Lease{ID: r.ID, Number: r.Number, UID: r.UID, State: r.State,
		EndWithConnection: r.EndWithConnection, Unenforced: r.Unenforced, Strict: r.Strict, Cutting: r.Cutting, Generation: r.Generation & 1, Since: r.Since,
		Mode: r.Mode, OwnLocalhost: r.OwnLocalhost, NetNS: r.NetNS, Attempt: r.Attempt}
	if err := errors.Join(r.identity(&l), r.network(&l)); err != nil {
		return Lease{}, fmt.Errorf("lease record: %w", err)
	}
	p, err := r.policy()
	if err != nil {
		return Lease{}, fmt.Errorf("lease record: %w", err)
	}
	l.Policy = p
	return l, nil
}

func (r record) identity(l *Lease) error {
	h, err := hex.DecodeString(r.SecretHash)
	if err != nil || len(h) != sha256.Size {
		return fmt.Errorf("secret_sha256 is no hash")
	}
	copy(l.SecretHash[:], h)
	if r.Name != "" {
		if l.Name, err = ParseName(r.Name); err != nil {
			return err
		}
	}
	if r.Address != "" {
		if l.Address, err = netip.ParseAddr(r.Address); err != nil {
			return err
		}
		if !Leasable(l.Address) {
			return fmt.Errorf("address %s is not of the range", r.Address)
		}
	}
	return nil
}

func (r record) network(l *Lease) (err error) {
	switch l.Mode {
	case "":
		l.Mode = ModeHost // records of before 0.2
	case ModeNone, ModeHost, ModeOwnIP:
	default:
		return fmt.Errorf("mode %q", string(r.Mode))
	}
	if l.Mode != ModeOwnIP {
		return nil
	}
	l.Tap = Tap{MTU: r.TapMTU, Name: r.TapName}
	if l.Tap.Address, err = netip.ParsePrefix(r.TapAddress); err != nil {
		return err
	}
	l.Tap.Gateway, err = netip.ParseAddr(r.TapGateway)
	return err
}

func (r record) policy() (Policy, error) {
	p := Policy{Egress: r.Egress, Ingress: r.Ingress, IngressPorts: r.IngressPorts, IngressBoxes: r.IngressBoxes}
	for _, s := range r.Rules {
		rule, err := ParseRule(s.To, s.Ports, s.Protocol)
		if err == nil && s.Until != "" {
			rule.Until, err = parseInstant(s.Until)
		}
		if err != nil {
			return Policy{}, err
		}
		p.Rules = append(p.Rules, rule)
	}
	for _, s := range r.DenySubnets {
		d, err := ParsePrefix(s)
		if err != nil {
			return Policy{}, err
		}
		p.DenySubnets = append(p.DenySubnets, d)
	}
	return p.Canonical()
}
