package belt

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/linux/hook"
)

// NetnsCookie names the network namespace of the calling thread (kernel 5.14).
func NetnsCookie() (uint64, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("belt: socket: %w", err)
	}
	defer unix.Close(fd)
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return 0, fmt.Errorf("belt: this kernel has no SO_NETNS_COOKIE, which came with 5.14: %w", err)
	}
	return cookie, nil
}

// Belt is the three programs on one open directory.
type Belt struct {
	boxes    int
	programs []Program
	gate     host.Gate
	every    bool
}

// New takes the descriptor of the open boxes directory, which stays the caller's and must outlive the
// Belt. A nil gate lets every change through.
func New(boxesFD int, c Config, gate host.Gate) (*Belt, error) {
	programs, err := Programs(c)
	if err != nil {
		return nil, err
	}
	return &Belt{boxes: boxesFD, programs: programs, gate: gate, every: c.EveryPacket}, nil
}

// EveryNamespace tells whether the packet programs act in namespaces that a box makes for itself too.
func (b *Belt) EveryNamespace() bool { return b.every }

// Apply makes the right programs be attached exactly once. What is right stays; an older version is
// replaced in place, without a moment between; copies are taken off after. Nothing is written when
// Probe would be Satisfied.
func (b *Belt) Apply() error {
	if err := privileged(); err != nil {
		return err
	}
	if err := rlimit.RemoveMemlock(); err != nil { // kernels before 5.11 count programs against it
		return fmt.Errorf("belt: memlock limit: %w", err)
	}
	for _, p := range b.programs {
		if err := b.apply(p); err != nil {
			return err
		}
	}
	return nil
}

func (b *Belt) apply(p Program) error {
	var prog *ebpf.Program
	defer func() { prog.Close() }() // nil where the right one was attached
	return b.on(p).Apply(b.gate, func() (_ *ebpf.Program, err error) {
		prog, err = ebpf.NewProgram(&ebpf.ProgramSpec{
			Name: p.Name, Type: p.Type, AttachType: p.Attach, Instructions: p.Instructions, License: "GPL",
		})
		if err != nil {
			return nil, fmt.Errorf("belt: load %s: %w", p.Name, cause(p, err))
		}
		return prog, nil
	})
}

// on is a program on boxes.
func (b *Belt) on(p Program) hook.Program {
	return hook.Program{Owner: "belt", Role: p.Role, Name: p.Name, Target: b.boxes, Attach: p.Attach, Instructions: p.Instructions}
}

// Detach takes off what is ours, in any version, and leaves the programs of others. It goes on past
// failures.
func (b *Belt) Detach() error {
	if err := privileged(); err != nil {
		return err
	}
	var errs []error
	for _, p := range b.programs {
		errs = append(errs, b.on(p).Detach(b.gate))
	}
	return errors.Join(errs...)
}

// Probe asks the kernel what is attached to boxes. Needs CAP_SYS_ADMIN; without it the State is Unknown.
func (b *Belt) Probe() (hook.Report, error) {
	if err := privileged(); errors.Is(err, unix.EPERM) {
		return hook.Report{State: installer.Unknown, Detail: "looking at attached programs needs root"}, nil
	} else if err != nil {
		return hook.Report{}, err
	}
	var all []hook.Program
	for _, p := range b.programs {
		all = append(all, b.on(p))
	}
	return hook.Probe(all)
}

// cause turns the verifier's page into the one line that matters.
func cause(p Program, err error) error {
	if miss := features.HaveProgramType(p.Type); errors.Is(miss, ebpf.ErrNotSupported) {
		return fmt.Errorf("this kernel has no cgroup BPF (CONFIG_CGROUP_BPF): %w", miss)
	}
	if miss := features.HaveProgramHelper(p.Type, asm.FnGetNetnsCookie); errors.Is(miss, ebpf.ErrNotSupported) {
		return fmt.Errorf("this kernel has no bpf_get_netns_cookie for %s programs: %w", p.Type, miss)
	}
	var verifier *ebpf.VerifierError
	if errors.As(err, &verifier) && len(verifier.Log) > 0 {
		return fmt.Errorf("%w (%s)", verifier.Cause, verifier.Log[len(verifier.Log)-1])
	}
	return err
}

// privileged says what is missing. Programs are looked up by id, for which the kernel wants
// CAP_SYS_ADMIN; asked first because probes for features take EPERM for an old kernel.
func privileged() error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return fmt.Errorf("belt: capabilities: %w", err)
	}
	if data[0].Effective&(1<<unix.CAP_SYS_ADMIN) == 0 {
		return fmt.Errorf("belt: needs root (CAP_SYS_ADMIN): %w", unix.EPERM)
	}
	return nil
}
