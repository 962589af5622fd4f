package linux

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/gominimal/minhost/linux/nft"
)

// Config is what an admin may change, in a file that is read when a program of minhost starts: the marks, where
// another program of the host has the same bits (minhost verify names it). Belt, table, helper and answerer
// have to read the same: it is to be changed before the installation, or before a reboot.
type Config struct {
	Marks nft.Marks
}

// DefaultConfig is that of a host without the file.
func DefaultConfig() Config { return Config{Marks: nft.DefaultMarks()} }

// ParseConfig reads {"marks": {"belt": "0x40000000", "lease": ..., "host": ..., "ingress": ..., "foreign": ..., "flow": ...}}, each one
// bit of its own above the low 16. What is not named is as by default; an unknown name is an error.
func ParseConfig(text []byte) (Config, error) {
	c := DefaultConfig()
	var file struct {
		Marks map[string]string `json:"marks"`
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
		n, err := strconv.ParseUint(strings.TrimPrefix(value, "0x"), 16, 32)
		if err != nil || !strings.HasPrefix(value, "0x") {
			return c, fmt.Errorf("marks.%s: %q is no bit like 0x40000000", name, value)
		}
		*to = uint32(n)
	}
	return c, c.Marks.Check()
}
