package linux

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/gominimal/minhost/linux/nft"
)

// Config is what an admin may change, in a file that is read when a program of minhost starts: the marks, where
// another program of the host has the same bits (minhost verify names it). Belt, table, helper and answerer
// have to read the same: it is to be changed before the installation, or before a reboot.
type Config struct {
	Marks nft.Marks
	// Planes are off by default.
	Planes nft.Planes
}

// DefaultConfig is that of a host without the file.
func DefaultConfig() Config { return Config{Marks: nft.DefaultMarks()} }

// ParseConfig reads {"marks": {"belt": "0x40000000", "lease": ..., "host": ..., "ingress": ..., "foreign": ..., "flow": ...}}, each one
// bit of its own above the low 16. {"planes": {"cohort": {"mark": "0x00800000", "source": ["192.0.2.5"]}, "node": ...}} is off
// by default. What is not named is as by default; an unknown name is an error.
func ParseConfig(text []byte) (Config, error) {
	c := DefaultConfig()
	var file struct {
		Marks  map[string]string `json:"marks"`
		Planes struct {
			Cohort plane `json:"cohort"`
			Node   plane `json:"node"`
		} `json:"planes"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return c, err
	}
	if d.More() {
		return c, fmt.Errorf("more than one value")
	}
	fields := map[string]*uint32{"belt": &c.Marks.Belt, "lease": &c.Marks.Lease, "host": &c.Marks.Host, "ingress": &c.Marks.Ingress, "foreign": &c.Marks.Foreign, "flow": &c.Marks.Flow}
	for name, value := range file.Marks {
		to, ok := fields[name]
		if !ok {
			return c, fmt.Errorf("marks.%s: there are belt, lease, host, ingress, foreign and flow", name)
		}
		n, err := bit(value)
		if err != nil {
			return c, fmt.Errorf("marks.%s: %w", name, err)
		}
		*to = n
	}
	var errs [2]error
	c.Planes.Cohort, errs[0] = file.Planes.Cohort.parse()
	c.Planes.Node, errs[1] = file.Planes.Node.parse()
	if err := errors.Join(errs[:]...); err != nil {
		return c, err
	}
	if err := c.Marks.Check(); err != nil {
		return c, err
	}
	return c, c.Planes.Check(c.Marks)
}

func bit(text string) (uint32, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 32)
	if err != nil || !strings.HasPrefix(text, "0x") {
		return 0, fmt.Errorf("%q is no bit like 0x40000000", text)
	}
	return uint32(n), nil
}

// plane is one of the file's.
type plane struct {
	Mark   string   `json:"mark"`
	Source []string `json:"source"`
}

func (p plane) parse() (out nft.Plane, err error) {
	if p.Mark != "" {
		if out.Mark, err = bit(p.Mark); err != nil {
			return out, fmt.Errorf("planes: %w", err)
		}
	}
	for _, text := range p.Source {
		a, err := netip.ParseAddr(text)
		to := &out.Source6
		if a.Is4() {
			to = &out.Source4
		}
		if err != nil || to.IsValid() {
			return out, fmt.Errorf("planes: source %q: want one address of each family at most", text)
		}
		*to = a
	}
	return out, nil
}
