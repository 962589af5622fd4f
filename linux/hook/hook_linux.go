package hook

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/host"
)

// allowMulti (BPF_F_ALLOW_MULTI) leaves room for programs of others on the cgroup and above, and keeps a box
// from overriding ours in a cgroup of its own below.
const allowMulti = 1 << 1

// Program is one program that is to be on one hook of one cgroup.
type Program struct {
	Owner        string // whose it is, in errors and for the gate: "belt"
	Role, Name   string // Name is Role and six hex digits
	Target       int    // open directory of the cgroup
	Attach       ebpf.AttachType
	Instructions asm.Instructions // by which the kernel's own sum tells the right version
}

// Attached is one program of ours on a hook. Close lets it go, which detaches nothing.
type Attached struct {
	Prog  *ebpf.Program
	ID    ebpf.ProgramID
	Name  string
	Right bool // the wanted instructions under the wanted name
}

// Close closes all.
func Close(found []Attached) {
	for _, a := range found {
		a.Prog.Close()
	}
}

// List sorts the programs on the hook into ours and others' names. The caller closes ours. A cgroup that is
// gone has none. Without cgroup BPF the error is ebpf.ErrNotSupported. Needs CAP_SYS_ADMIN.
func (p Program) List() (ours []Attached, others []string, err error) {
	got, err := link.QueryPrograms(link.QueryOptions{Target: p.Target, Attach: p.Attach})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil // the directory is gone, and what was attached to it
	case errors.Is(err, ebpf.ErrNotSupported):
		return nil, nil, fmt.Errorf("%s: hook %s: this kernel has none, or no cgroup BPF (CONFIG_CGROUP_BPF): %w", p.Owner, p.Attach, err)
	case err != nil:
		return nil, nil, fmt.Errorf("%s: hook %s: %w", p.Owner, p.Attach, err)
	}
	for _, one := range got.Programs {
		a, err := p.look(one.ID)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // taken off since
		case err != nil:
			Close(ours)
			return nil, nil, fmt.Errorf("%s: program %d: %w", p.Owner, one.ID, err)
		case !Ours(p.Role, a.Name):
			others = append(others, fmt.Sprintf("%s (program %d)", a.Name, a.ID))
			a.Prog.Close()
		default:
			ours = append(ours, a)
		}
	}
	return ours, others, nil
}

func (p Program) look(id ebpf.ProgramID) (Attached, error) {
	prog, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return Attached{}, err
	}
	info, err := prog.Info()
	if err == nil {
		var same bool
		if same, err = p.Instructions.HasTag(info.Tag, byteOrder()); err == nil {
			return Attached{prog, id, info.Name, same && info.Name == p.Name}, nil
		}
	}
	return Attached{}, errors.Join(err, prog.Close())
}

// byteOrder is this machine's, as a value that the assembler knows.
func byteOrder() binary.ByteOrder {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return binary.LittleEndian
	}
	return binary.BigEndian
}

// Apply makes the right program be attached exactly once. What is right stays; another version is replaced in
// place, without a moment between; copies are taken off after. load is called when there is none, behind the
// gate; what it returns stays its owner's. Nothing is written when Probe would be Satisfied.
func (p Program) Apply(gate host.Gate, load func() (*ebpf.Program, error)) error {
	found, _, err := p.List()
	if err != nil {
		return err
	}
	defer Close(found)
	keep := -1
	for i, a := range found {
		if a.Right && keep < 0 {
			keep = i
		}
	}
	if keep < 0 {
		var old *ebpf.Program
		if len(found) > 0 {
			keep, old = 0, found[0].Prog
		}
		if err := p.attach(gate, load, old); err != nil {
			return err
		}
	}
	for i, a := range found {
		if i == keep {
			continue
		}
		if err := p.detach(gate, a); err != nil {
			return err
		}
	}
	return nil
}

func (p Program) attach(gate host.Gate, load func() (*ebpf.Program, error), old *ebpf.Program) error {
	change := p.Owner + " attach " + p.Name
	if old != nil {
		change = p.Owner + " replace with " + p.Name
	}
	if err := gate.Pass(change); err != nil {
		return err
	}
	prog, err := load()
	if err != nil {
		return err
	}
	opts := link.RawAttachProgramOptions{Target: p.Target, Program: prog, Attach: p.Attach, Flags: allowMulti}
	if old != nil {
		opts.Anchor = link.ReplaceProgram(old)
	}
	if err := link.RawAttachProgram(opts); err != nil {
		if errors.Is(err, unix.EPERM) {
			err = fmt.Errorf("a program on this cgroup or above it leaves no room for others (bpftool cgroup tree shows it): %w", err)
		}
		return fmt.Errorf("%s: attach %s: %w", p.Owner, p.Name, err)
	}
	return nil
}

func (p Program) detach(gate host.Gate, a Attached) error {
	if err := gate.Pass(fmt.Sprintf("%s detach %s (program %d)", p.Owner, a.Name, a.ID)); err != nil {
		return err
	}
	err := link.RawDetachProgram(link.RawDetachProgramOptions{Target: p.Target, Program: a.Prog, Attach: p.Attach})
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%s: detach %s: %w", p.Owner, a.Name, err)
	}
	return nil
}

// Detach takes off what is ours, in any version, and leaves the programs of others. It goes on past failures.
func (p Program) Detach(gate host.Gate) error {
	found, _, err := p.List()
	errs := []error{err}
	for _, a := range found {
		errs = append(errs, p.detach(gate, a))
	}
	Close(found)
	return errors.Join(errs...)
}
