package localhost

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/gominimal/minhost/installer"
)

// Report is what Probe read.
type Report struct {
	// State is Satisfied (each program once), Absent (none of ours), Drifted (an older version, a copy, or
	// some are missing) or Blocked (none, and this kernel cannot load them).
	State installer.State
	// Detail is one line: the first thing that is not as it should be, or that all is.
	Detail string
	// Foreign are programs of others on the same hooks; they are left alone.
	Foreign []string
}

// attached is one program of ours on a hook.
type attached struct {
	prog  *ebpf.Program
	id    ebpf.ProgramID
	name  string
	right bool // the wanted instructions, by the kernel's own sum of them
}

func closeAll(found []attached) {
	for _, a := range found {
		a.prog.Close()
	}
}

// Probe asks the kernel what is attached. Needs CAP_SYS_ADMIN.
func (s *Set) Probe() (Report, error) {
	var r Report
	var wrong []string
	none := true
	for _, p := range s.programs {
		found, others, err := s.list(p)
		if errors.Is(err, ebpf.ErrNotSupported) {
			return Report{State: installer.Blocked, Detail: err.Error()}, nil
		}
		if err != nil {
			return r, err
		}
		r.Foreign = append(r.Foreign, others...)
		none = none && len(found) == 0
		switch {
		case len(found) == 0:
			wrong = append(wrong, fmt.Sprintf("%s is not attached (%s)", p.Name, p.Attach))
		case len(found) > 1:
			wrong = append(wrong, fmt.Sprintf("%s is attached %d times", p.Role, len(found)))
		case !found[0].right:
			wrong = append(wrong, fmt.Sprintf("%s is attached, want %s", found[0].name, p.Name))
		}
		closeAll(found)
	}
	switch {
	case none:
		r.State, r.Detail = installer.Absent, "no program of own localhosts is attached"
		if err := s.try(); err != nil {
			r.State, r.Detail = installer.Blocked, err.Error()
		}
	case len(wrong) > 0:
		r.State, r.Detail = installer.Drifted, wrong[0]
	default:
		r.State, r.Detail = installer.Satisfied, fmt.Sprintf("%d programs attached, each once", len(s.programs))
	}
	return r, nil
}

// try loads all programs over maps of its own, and lets them go.
func (s *Set) try() error {
	m, err := newMaps(nil)
	if err != nil {
		return err
	}
	defer m.close()
	l, err := s.load(m)
	l.close()
	return err
}

// byteOrder is this machine's, as a value that the assembler knows.
func byteOrder() binary.ByteOrder {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return binary.LittleEndian
	}
	return binary.BigEndian
}

// list sorts the programs on one hook into ours and others' names. The caller closes ours.
func (s *Set) list(p Program) (ours []attached, others []string, err error) {
	got, err := link.QueryPrograms(link.QueryOptions{Target: s.fds[p.Place], Attach: p.Attach})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil // the directory is gone, and what was attached to it
	case err != nil:
		return nil, nil, fmt.Errorf("localhost: hook %s: %w", p.Attach, err)
	}
	for _, one := range got.Programs {
		a, err := s.look(p, one.ID)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // taken off since
		case err != nil:
			closeAll(ours)
			return nil, nil, fmt.Errorf("localhost: program %d: %w", one.ID, err)
		case !p.ours(a.name):
			others = append(others, fmt.Sprintf("%s (program %d)", a.name, a.id))
			a.prog.Close()
		default:
			ours = append(ours, a)
		}
	}
	return ours, others, nil
}

func (s *Set) look(p Program, id ebpf.ProgramID) (attached, error) {
	prog, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return attached{}, err
	}
	info, err := prog.Info()
	if err == nil {
		var same bool
		if same, err = p.Instructions.HasTag(info.Tag, byteOrder()); err == nil {
			return attached{prog, id, info.Name, same && info.Name == p.Name}, nil
		}
	}
	return attached{}, errors.Join(err, prog.Close())
}
