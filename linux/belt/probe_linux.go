package belt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer"
)

// Report is what Probe read.
type Report struct {
	// State is Satisfied (each program once), Absent (none of ours), Drifted (an older version, a copy,
	// or some are missing) or Unknown (not allowed to look).
	State installer.State
	// Detail is one line: the first thing that is not as it should be, or that all is.
	Detail string
	// Foreign are programs of others on the same hooks; they are left alone.
	Foreign []string
}

// attached is one program of ours on a hook of boxes.
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

// Probe asks the kernel what is attached and compares the sums that it made of the instructions when it
// loaded them. Needs CAP_SYS_ADMIN; without it the State is Unknown.
func (b *Belt) Probe() (Report, error) {
	var r Report
	if err := privileged(); errors.Is(err, unix.EPERM) {
		return Report{State: installer.Unknown, Detail: "looking at attached programs needs root"}, nil
	} else if err != nil {
		return r, err
	}
	var wrong []string
	none := true
	for _, p := range b.programs {
		found, others, err := b.list(p)
		if err != nil {
			return r, err
		}
		r.Foreign = append(r.Foreign, others...)
		none = none && len(found) == 0
		switch {
		case len(found) == 0:
			wrong = append(wrong, fmt.Sprintf("%s is not attached", p.Name))
		case len(found) > 1:
			wrong = append(wrong, fmt.Sprintf("%s is attached %d times: boxes reach nothing", p.Role, len(found)))
		case !found[0].right:
			wrong = append(wrong, fmt.Sprintf("%s is attached, want %s", found[0].name, p.Name))
		}
		closeAll(found)
	}
	switch {
	case none:
		r.State, r.Detail = installer.Absent, "no program of the belt is attached to boxes"
	case len(wrong) > 0:
		r.State, r.Detail = installer.Drifted, wrong[0]
	default:
		r.State, r.Detail = installer.Satisfied, fmt.Sprintf("%d programs attached to boxes, each once", len(b.programs))
	}
	return r, nil
}

// byteOrder is this machine's, as a value that the assembler knows.
func byteOrder() binary.ByteOrder {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return binary.LittleEndian
	}
	return binary.BigEndian
}

func (b *Belt) attached(p Program) ([]attached, error) {
	found, _, err := b.list(p)
	return found, err
}

// list sorts the programs on one hook of boxes into ours and others' names. The caller closes ours.
func (b *Belt) list(p Program) (ours []attached, others []string, err error) {
	got, err := link.QueryPrograms(link.QueryOptions{Target: b.boxes, Attach: p.Attach})
	if err != nil {
		if errors.Is(err, ebpf.ErrNotSupported) {
			err = fmt.Errorf("this kernel has no cgroup BPF (CONFIG_CGROUP_BPF): %w", err)
		}
		return nil, nil, fmt.Errorf("belt: list programs: %w", err)
	}
	for _, one := range got.Programs {
		prog, err := ebpf.NewProgramFromID(one.ID)
		if errors.Is(err, fs.ErrNotExist) {
			continue // taken off since
		}
		if err != nil {
			closeAll(ours)
			return nil, nil, fmt.Errorf("belt: program %d: %w", one.ID, err)
		}
		info, err := prog.Info()
		if err != nil {
			prog.Close()
			closeAll(ours)
			return nil, nil, fmt.Errorf("belt: program %d: %w", one.ID, err)
		}
		if !p.ours(info.Name) {
			others = append(others, fmt.Sprintf("%s (program %d)", info.Name, one.ID))
			prog.Close()
			continue
		}
		same, err := p.Instructions.HasTag(info.Tag, byteOrder())
		if err != nil {
			prog.Close()
			closeAll(ours)
			return nil, nil, fmt.Errorf("belt: program %d: %w", one.ID, err)
		}
		ours = append(ours, attached{prog, one.ID, info.Name, same && info.Name == p.Name})
	}
	return ours, others, nil
}
