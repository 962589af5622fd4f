package localhost

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/linux/hook"
)

// Set is the programs on one tree.
type Set struct {
	fds      [2]int // by Place
	programs []Program
	gate     host.Gate
}

// New takes the open directories of boxes and of the root of the mount, which stay the caller's and must
// outlive the Set; below is how many levels boxes is below that root, from which c.Level is made. A nil gate lets every change through.
func New(boxesFD, rootFD, below int, c Config, gate host.Gate) (*Set, error) {
	var st unix.Stat_t
	if err := unix.Fstat(rootFD, &st); err != nil {
		return nil, fmt.Errorf("localhost: cgroup root: %w", err)
	}
	if err := rlimit.RemoveMemlock(); err != nil { // kernels before 5.11 count programs against it
		return nil, fmt.Errorf("localhost: memlock limit: %w", err)
	}
	depth, err := rootLevel(st.Ino)
	if err != nil {
		return nil, err
	}
	c.Level = depth + below + 1
	programs, err := Programs(c)
	if err != nil {
		return nil, err
	}
	return &Set{fds: [2]int{boxesFD, rootFD}, programs: programs, gate: gate}, nil
}

// Apply makes the right programs be attached exactly once, over the maps that an older version has. All are
// loaded before the first is attached: where one hook is missing nothing is changed. An older version is
// replaced in place. Nothing is written when Probe would be Satisfied.
func (s *Set) Apply() error {
	maps, err := s.maps(true)
	if err != nil {
		return err
	}
	defer maps.close()
	loaded, err := s.load(maps)
	if err != nil {
		return err
	}
	defer loaded.close()
	for i, p := range s.programs {
		if err := s.on(p).Apply(s.gate, func() (*ebpf.Program, error) { return loaded[i], nil }); err != nil {
			return err
		}
	}
	return nil
}

type loaded []*ebpf.Program

func (l loaded) close() {
	for _, p := range l {
		p.Close()
	}
}

func (s *Set) load(m maps) (loaded, error) {
	var out loaded
	for _, p := range s.programs {
		prog, err := load(p, m)
		if err != nil {
			out.close()
			return nil, err
		}
		out = append(out, prog)
	}
	return out, nil
}

func load(p Program, m maps) (*ebpf.Program, error) {
	is := append(p.Instructions[:0:0], p.Instructions...)
	for i := range is {
		if known := m[is[i].Reference()]; known != nil {
			if err := is[i].AssociateMap(known); err != nil {
				return nil, fmt.Errorf("localhost: assemble %s: %w", p.Name, err)
			}
		}
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: p.Name, Type: p.Type, AttachType: p.Attach, Instructions: is, License: "GPL"})
	if err != nil {
		return nil, fmt.Errorf("localhost: load %s for %s: %w", p.Name, p.Attach, cause(err))
	}
	return prog, nil
}

// cause turns the verifier's page into the one line that matters.
func cause(err error) error {
	var verifier *ebpf.VerifierError
	if errors.As(err, &verifier) && len(verifier.Log) > 0 {
		return fmt.Errorf("%w (%s)", verifier.Cause, verifier.Log[max(0, len(verifier.Log)-2)])
	}
	return err
}

// on is a program at its place.
func (s *Set) on(p Program) hook.Program {
	return hook.Program{Owner: "localhost", Role: p.Role, Name: p.Name, Target: s.fds[p.Place], Attach: p.Attach, Instructions: p.Instructions}
}

// Detach takes off what is ours, in any version, and leaves the programs of others. The maps go with them. It
// goes on past failures.
func (s *Set) Detach() error { return s.detachFrom(OnBoxes, OnRoot) }

// Unguard takes off what is ours at the root, when the tree is gone and with it the rest.
func Unguard(rootFD int, gate host.Gate) error {
	programs, err := Programs(Config{NetnsCookie: 1, Level: 1}) // any version of ours is ours
	if err != nil {
		return err
	}
	s := &Set{fds: [2]int{OnRoot: rootFD}, programs: programs, gate: gate}
	return s.detachFrom(OnRoot)
}

func (s *Set) detachFrom(places ...Place) error {
	var errs []error
	for i := len(s.programs) - 1; i >= 0; i-- {
		p := s.programs[i]
		if !slices.Contains(places, p.Place) {
			continue
		}
		errs = append(errs, s.on(p).Detach(s.gate))
	}
	return errors.Join(errs...)
}

// Probe asks the kernel what is attached. It is Blocked where nothing is and this kernel cannot load them. Needs
// CAP_SYS_ADMIN.
func (s *Set) Probe() (hook.Report, error) {
	var all []hook.Program
	for _, p := range s.programs {
		all = append(all, s.on(p))
	}
	r, err := hook.Probe(all)
	if errors.Is(err, ebpf.ErrNotSupported) {
		return hook.Report{State: installer.Blocked, Detail: err.Error()}, nil
	}
	if err == nil && r.State == installer.Absent {
		if cannot := s.try(); cannot != nil {
			r.State, r.Detail = installer.Blocked, cannot.Error()
		}
	}
	return r, err
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
