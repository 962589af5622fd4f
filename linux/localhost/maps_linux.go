package localhost

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cilium/ebpf"

	"github.com/gominimal/minhost/linux/hook"
)

// maps by name.
type maps map[string]*ebpf.Map

func (m maps) close() {
	for _, x := range m {
		x.Close()
	}
}

// maps finds the maps that the attached programs hold, and makes those that are missing when make is true.
func (s *Set) maps(create bool) (maps, error) {
	held := maps{}
	for _, p := range s.programs {
		found, _, err := s.on(p).List()
		if err != nil {
			held.close()
			return nil, err
		}
		for _, a := range found {
			if err = errors.Join(err, held.of(a.Prog)); err != nil {
				break
			}
		}
		hook.Close(found)
		if err != nil {
			held.close()
			return nil, err
		}
	}
	if create {
		return newMaps(held)
	}
	for _, spec := range mapSpecs() {
		if held[spec.Name] == nil {
			held.close()
			return nil, fmt.Errorf("localhost: the programs are not attached: %w", fs.ErrNotExist)
		}
	}
	return held, nil
}

// of adds the maps of one loaded program.
func (m maps) of(p *ebpf.Program) error {
	info, err := p.Info()
	if err != nil {
		return fmt.Errorf("localhost: program: %w", err)
	}
	ids, _ := info.MapIDs()
	for _, id := range ids {
		x, err := ebpf.NewMapFromID(id)
		if err != nil {
			return fmt.Errorf("localhost: map %d: %w", id, err)
		}
		i, err := x.Info()
		if err != nil || m[i.Name] != nil {
			x.Close()
			continue
		}
		m[i.Name] = x
	}
	return nil
}

// newMaps makes what held lacks. It takes held over.
func newMaps(held maps) (maps, error) {
	if held == nil {
		held = maps{}
	}
	for _, spec := range mapSpecs() {
		if old := held[spec.Name]; old != nil {
			if old.Type() == spec.Type && old.KeySize() == spec.KeySize && old.ValueSize() == spec.ValueSize {
				continue
			}
			old.Close() // another version's: the helper of this one fills anew
		}
		m, err := ebpf.NewMap(spec)
		if err != nil {
			delete(held, spec.Name)
			held.close()
			return nil, fmt.Errorf("localhost: map %s: %w", spec.Name, cause(err))
		}
		held[spec.Name] = m
	}
	return held, nil
}
