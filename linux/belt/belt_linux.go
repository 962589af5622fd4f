package belt

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/host"
)

// allowMulti (BPF_F_ALLOW_MULTI) leaves room for programs of others on boxes and above, and keeps a box
// from overriding ours in a cgroup of its own below.
const allowMulti = 1 << 1

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
	found, err := b.attached(p)
	if err != nil {
		return err
	}
	defer closeAll(found)
	keep := -1
	for i, a := range found {
		if a.right && keep < 0 {
			keep = i
		}
	}
	if keep < 0 {
		var old *ebpf.Program
		if len(found) > 0 {
			keep, old = 0, found[0].prog
		}
		if err := b.attach(p, old); err != nil {
			return err
		}
	}
	for i, a := range found {
		if i == keep {
			continue
		}
		if err := b.detach(p, a); err != nil {
			return err
		}
	}
	return nil
}

func (b *Belt) attach(p Program, old *ebpf.Program) error {
	change := "belt attach " + p.Name
	if old != nil {
		change = "belt replace with " + p.Name
	}
	if err := b.gate.Pass(change); err != nil {
		return err
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: p.Name, Type: p.Type, AttachType: p.Attach, Instructions: p.Instructions, License: "GPL",
	})
	if err != nil {
		return fmt.Errorf("belt: load %s: %w", p.Name, cause(p, err))
	}
	defer prog.Close()
	opts := link.RawAttachProgramOptions{Target: b.boxes, Program: prog, Attach: p.Attach, Flags: allowMulti}
	if old != nil {
		opts.Anchor = link.ReplaceProgram(old)
	}
	if err := link.RawAttachProgram(opts); err != nil {
		if errors.Is(err, unix.EPERM) {
			err = fmt.Errorf("a program on boxes or above it leaves no room for others (bpftool cgroup tree shows it): %w", err)
		}
		return fmt.Errorf("belt: attach %s: %w", p.Name, err)
	}
	return nil
}

func (b *Belt) detach(p Program, a attached) error {
	if err := b.gate.Pass(fmt.Sprintf("belt detach %s (program %d)", a.name, a.id)); err != nil {
		return err
	}
	err := link.RawDetachProgram(link.RawDetachProgramOptions{Target: b.boxes, Program: a.prog, Attach: p.Attach})
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("belt: detach %s: %w", a.name, err)
	}
	return nil
}

// Detach takes off what is ours, in any version, and leaves the programs of others. It goes on past
// failures.
func (b *Belt) Detach() error {
	if err := privileged(); err != nil {
		return err
	}
	var errs []error
	for _, p := range b.programs {
		found, err := b.attached(p)
		errs = append(errs, err)
		for _, a := range found {
			errs = append(errs, b.detach(p, a))
		}
		closeAll(found)
	}
	return errors.Join(errs...)
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
