package installer_test

import (
	"context"
	"io/fs"

	"github.com/gominimal/minhost/installer"
)

// fake is a step whose three calls a test gives; nil means: absent, and nothing happens.
type fake struct {
	id       installer.ID
	lifetime installer.Lifetime
	optional bool
	probe    func() (installer.Observation, error)
	apply    func(*installer.Record) error
	undo     func(installer.Record) error
}

func (f *fake) ID() installer.ID             { return f.id }
func (f *fake) Describe() string             { return "make " + string(f.id) }
func (f *fake) Lifetime() installer.Lifetime { return f.lifetime }
func (f *fake) Required() bool               { return !f.optional }

func (f *fake) Probe(context.Context) (installer.Observation, error) {
	if f.probe == nil {
		return installer.Observation{State: installer.Absent}, nil
	}
	return f.probe()
}

func (f *fake) Apply(_ context.Context, r *installer.Record) error {
	if f.apply == nil {
		return nil
	}
	return f.apply(r)
}

func (f *fake) Undo(_ context.Context, r installer.Record) error {
	if f.undo == nil {
		return nil
	}
	return f.undo(r)
}

// kernel is a host without files: what each step switched on, and the calls in their order.
type kernel struct {
	on    map[installer.ID]bool
	calls []string
}

func newKernel() *kernel { return &kernel{on: map[installer.ID]bool{}} }

// step is a fake that switches its id on and off.
func (k *kernel) step(id installer.ID, lifetime installer.Lifetime) *fake {
	return &fake{
		id: id, lifetime: lifetime,
		probe: func() (installer.Observation, error) {
			if k.on[id] {
				return installer.Observation{State: installer.Satisfied}, nil
			}
			return installer.Observation{State: installer.Absent, Detail: "off"}, nil
		},
		apply: func(r *installer.Record) error {
			k.calls = append(k.calls, "apply "+string(id))
			if err := r.Keep("kept by " + string(id)); err != nil {
				return err
			}
			k.on[id] = true
			return nil
		},
		undo: func(installer.Record) error {
			k.calls = append(k.calls, "undo "+string(id))
			delete(k.on, id)
			return nil
		},
	}
}

// memory is a Store that counts.
type memory struct {
	data  []byte
	saves int
	fail  error
}

func (m *memory) Name() string { return "/journal" }

func (m *memory) Load() ([]byte, error) {
	if m.data == nil {
		return nil, fs.ErrNotExist
	}
	return m.data, nil
}

func (m *memory) Save(b []byte) error {
	if m.fail != nil {
		return m.fail
	}
	m.saves++
	m.data = append([]byte(nil), b...)
	return nil
}

func (m *memory) Remove() error {
	m.data = nil
	return nil
}

func engine(store installer.Store, steps ...*fake) *installer.Engine {
	return engineAt("boot-1", store, steps...)
}

func engineAt(boot string, store installer.Store, steps ...*fake) *installer.Engine {
	all := make([]installer.Step, len(steps))
	for i, s := range steps {
		all[i] = s
	}
	return installer.New(all, store, boot, nil)
}
