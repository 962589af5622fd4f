// Package installer is the engine: it probes, plans, applies and undoes Steps, and journals
// what it is about to do before it does it (DESIGN.md section 4).
//
// It knows no operating system and no third-party library: what a step does to a host is the
// step's own business (packages linux and darwin), reached through the edges of installer/host.
// It does not start services, speak to the helper or print: cmd/minhost does.
//
// Beware: the order of the steps given to New is the order of Apply and the reverse of Undo.
package installer

import (
	"context"
	"encoding/json"
	"fmt"
)

// ID names a step in plans, journals and --only. An ID never changes once released.
type ID string

// Lifetime says how long the effect of a step lasts.
type Lifetime int

const (
	// Persistent effects are files: they are there after a reboot.
	Persistent Lifetime = iota
	// Boot effects live in the kernel or in processes (tree, table, belt, services): the
	// journal of another boot counts them as Absent.
	Boot
)

func (l Lifetime) String() string {
	if l == Boot {
		return "boot"
	}
	return "persistent"
}

// State is what a probe found.
type State int

const (
	// Unknown needs root, and there is no helper to ask.
	Unknown State = iota
	// Satisfied: nothing to do.
	Satisfied
	// Absent: not there.
	Absent
	// Drifted: ours, but changed.
	Drifted
	// Foreign: somebody else's; never touched.
	Foreign
	// Blocked by a fact of the host that no step can change.
	Blocked
)

var stateNames = [...]string{"unknown", "satisfied", "absent", "drifted", "foreign", "blocked"}

func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return fmt.Sprintf("state(%d)", int(s))
	}
	return stateNames[s]
}

// File is what a step will write: path, mode and whole content. Content may be nil for a large
// file that Digest (sha256, hex) names, like the program itself.
type File struct {
	Path    string
	Mode    uint32
	Content []byte
	Digest  string
}

// Observation is the result of a probe.
type Observation struct {
	State State
	// Detail is one line: the fact that was read.
	Detail string
	// Loses is one line: what the operator does without as long as the state is not Satisfied.
	Loses string
	// Next is the command that shows or mends it; may be empty.
	Next string
	// Private is set when only root can make this probe: the state is then not part of the
	// digest of the plan, since the operator who looked at the plan could not see it.
	Private bool
	// Files are what Apply would write, for the plan, the script and the digest.
	Files []File
}

// Step is the smallest change that can be reverted alone.
type Step interface {
	ID() ID
	// Describe is one imperative line for the plan.
	Describe() string
	Lifetime() Lifetime
	// Required says whether a host without this step is unfinished (true) or degraded (false).
	Required() bool
	// Probe only reads, and reads the effect, not a marker.
	Probe(context.Context) (Observation, error)
	// Apply is called from Absent or Drifted only. What it needs for Undo it hands to
	// Record.Keep before it changes anything.
	Apply(context.Context, *Record) error
	// Undo tolerates what is already gone and never touches what is not ours. Bytes that
	// somebody changed since are left and reported as an error.
	Undo(context.Context, Record) error
}

// Record is the journal entry of one step.
type Record struct {
	Step     ID              `json:"step"`
	Lifetime string          `json:"lifetime"`
	BootID   string          `json:"boot_id"`
	Done     bool            `json:"done"`
	AtBoot   bool            `json:"at_boot,omitempty"` // applied by the boot, not by a hand
	Prior    json.RawMessage `json:"prior,omitempty"`
	Made     json.RawMessage `json:"made,omitempty"`

	save func(Record) error
}

// Keep stores what Undo will need, durably, before it returns. A second Keep for the same step
// does not replace the first: the state before the very first change is what Undo gives back.
func (r *Record) Keep(prior any) error {
	if len(r.Prior) != 0 {
		return nil
	}
	b, err := json.Marshal(prior)
	if err != nil {
		return err
	}
	r.Prior = b
	return r.store()
}

// Note stores what the step is about to make (the hash of a file, say), durably, before it
// returns. Unlike Keep it replaces what was noted before: Undo compares it with what it finds.
func (r *Record) Note(made any) error {
	b, err := json.Marshal(made)
	if err != nil {
		return err
	}
	r.Made = b
	return r.store()
}

func (r *Record) store() error {
	if r.save == nil {
		return nil
	}
	return r.save(*r)
}

// Kept decodes what Keep stored; ok is false when nothing was.
func (r Record) Kept(into any) (ok bool, err error) {
	if len(r.Prior) == 0 {
		return false, nil
	}
	return true, json.Unmarshal(r.Prior, into)
}

// Noted decodes what Note stored last; ok is false when nothing was.
func (r Record) Noted(into any) (ok bool, err error) {
	if len(r.Made) == 0 {
		return false, nil
	}
	return true, json.Unmarshal(r.Made, into)
}
