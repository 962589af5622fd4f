package installer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Row is one step of a plan with what its probe found.
type Row struct {
	ID       ID
	Describe string
	Lifetime Lifetime
	Required bool
	Observation
}

// Plan is what is there and what is wanted, at one moment. Nobody may act on it later: Apply
// probes again.
type Plan struct{ Rows []Row }

// Plan probes every step. A probe that fails makes a row of state Unknown with the error as its
// detail: a plan is always printable.
func (e *Engine) Plan(ctx context.Context) Plan {
	var p Plan
	for _, s := range e.steps {
		p.Rows = append(p.Rows, e.row(ctx, s))
	}
	return p
}

func (e *Engine) row(ctx context.Context, s Step) Row {
	obs, err := e.probe(ctx, s)
	if err != nil {
		obs.State, obs.Detail = Unknown, err.Error()
	}
	return Row{ID: s.ID(), Describe: s.Describe(), Lifetime: s.Lifetime(), Required: s.Required(), Observation: obs}
}

// Finished says that every required step is satisfied.
func (p Plan) Finished() bool {
	for _, r := range p.Rows {
		if r.Required && r.State != Satisfied {
			return false
		}
	}
	return true
}

// Settled says that Apply would change nothing and refuse nothing: a finished host whose optional steps
// are satisfied too, or cannot be had.
func (p Plan) Settled() bool {
	for _, r := range p.Degraded() {
		if r.State != Foreign && r.State != Blocked {
			return false
		}
	}
	return p.Finished()
}

// ExitStatus is 0 for a finished host, else 1.
func (p Plan) ExitStatus() int {
	if p.Finished() {
		return 0
	}
	return 1
}

// Degraded returns the optional steps that are not satisfied.
func (p Plan) Degraded() []Row {
	var rows []Row
	for _, r := range p.Rows {
		if !r.Required && r.State != Satisfied {
			rows = append(rows, r)
		}
	}
	return rows
}

// digestRow is what the digest covers. Details, and states that only root can see, are not part
// of it, so that root finds the digest of the plan that the operator looked at.
type digestRow struct {
	ID       ID         `json:"id"`
	Describe string     `json:"describe"`
	Lifetime string     `json:"lifetime"`
	Required bool       `json:"required"`
	State    string     `json:"state,omitempty"`
	Files    []fileHash `json:"files,omitempty"`
}

type fileHash struct {
	Path   string `json:"path"`
	Mode   uint32 `json:"mode"`
	SHA256 string `json:"sha256"`
}

// Digest is the sha256, in hex, of the wanted state and of the states that everybody can see.
func (p Plan) Digest() string {
	rows := make([]digestRow, len(p.Rows))
	for i, r := range p.Rows {
		rows[i] = digestRow{ID: r.ID, Describe: r.Describe, Lifetime: r.Lifetime.String(), Required: r.Required}
		if !r.Private {
			rows[i].State = r.State.String()
		}
		for _, f := range r.Files {
			rows[i].Files = append(rows[i].Files, fileHash{f.Path, f.Mode, f.Hash()})
		}
	}
	b, err := json.Marshal(rows)
	if err != nil {
		return "" // strings and numbers always marshal; an empty digest never matches
	}
	sum := sha256.Sum256(append([]byte("minhost/v1/digest\n"), b...))
	return hex.EncodeToString(sum[:])
}

// Hash is the sha256 of the content, in hex: Digest, where the content is not carried along.
func (f File) Hash() string {
	if f.Content == nil && f.Digest != "" {
		return f.Digest
	}
	sum := sha256.Sum256(f.Content)
	return hex.EncodeToString(sum[:])
}
