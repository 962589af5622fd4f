package reboot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/verify"
)

// MarkerSchema names the stored form.
const MarkerSchema = "minhost/v1/reboot"

// Marker is what is expected of the host after its next reboot, and after each one that follows.
type Marker struct {
	Schema  string `json:"schema"`
	BootID  string `json:"boot_id"`
	Taken   string `json:"taken"`   // RFC 3339, UTC
	Version string `json:"version"` // of the program that made it
	Digest  string `json:"digest"`
	// Expect are the names of the rows that were ok.
	Expect []string `json:"expect"`
}

// Digest is the sha256, in hex, of everything that the steps write: paths, modes and contents. Who
// the operator is and what the probes say does not count: root and the service manager may see
// another plan than the operator did.
func Digest(p installer.Plan) string {
	h := sha256.New()
	fmt.Fprintln(h, MarkerSchema)
	for _, r := range p.Rows {
		for _, f := range r.Files {
			fmt.Fprintf(h, "%q %o %s\n", f.Path, f.Mode, f.Hash())
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Expect makes the marker of a host that is ready. What is not ready now cannot be expected later.
func Expect(r verify.Report, bootID, version, digest string, now time.Time) (Marker, error) {
	if !r.Ready() {
		return Marker{}, errors.New("this host is not ready now: nothing can be expected of it after a reboot")
	}
	m := Marker{Schema: MarkerSchema, BootID: bootID, Taken: now.UTC().Format(time.RFC3339), Version: version, Digest: digest}
	for _, row := range r.Rows {
		if row.State == verify.OK {
			m.Expect = append(m.Expect, row.Name)
		}
	}
	return m, nil
}

// Encode is the stored form: JSON, one member a line, so that a shell script can read it too.
func (m Marker) Encode() ([]byte, error) {
	b, err := json.MarshalIndent(m, "", " ")
	return append(b, '\n'), err
}

// Decode reads what Encode wrote and nothing else.
func Decode(b []byte) (Marker, error) {
	var m Marker
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, fmt.Errorf("read reboot marker: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return m, errors.New("read reboot marker: something follows the JSON object")
	}
	if m.Schema != MarkerSchema {
		return m, fmt.Errorf("read reboot marker: schema %q is not %q", m.Schema, MarkerSchema)
	}
	if m.BootID == "" || m.Digest == "" {
		return m, errors.New("read reboot marker: boot_id or digest is missing")
	}
	return m, nil
}
