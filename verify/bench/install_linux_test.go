package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

// BenchmarkInstall is DESIGN.md section 10's "finalize-install, all steps missing", at most 2 s, on a host without a
// service manager: the probe, the plan, every step, the second probe and verify.
func BenchmarkInstall(b *testing.B) {
	var took, work spread
	for b.Loop() {
		b.StopTimer()
		rig.Bare(b)
		began := worked(b)
		b.StartTimer()
		took = append(took, rig.Install(b).Took)
		work = append(work, worked(b)-began)
	}
	took.report(b, "install")
	work.report(b, "install-work")
}

// BenchmarkBoot is what a boot waits for, at most 200 ms of work: tree, belt, table, helper and answerer are there
// again, which a boot's "apply" does. Of systemd's units each does a part of it. The program starts once before: at a
// boot its file is read from the disk, here it is in memory.
func BenchmarkBoot(b *testing.B) {
	rig.Bare(b)
	rig.Install(b)
	var took, work spread
	for b.Loop() {
		b.StopTimer()
		rig.Halt(b)
		began := worked(b)
		b.StartTimer()
		r := rig.Cmd{Path: rig.Program}.Run(b, "apply", "--at-boot")
		r.Want(b, 0)
		took, work = append(took, r.Took), append(work, worked(b)-began)
	}
	took.report(b, "boot")
	work.report(b, "boot-work")
}

// worked is the processor time of the programs that were started until now, of those that have ended and of those
// that stay.
func worked(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &u); err != nil {
		b.Fatal(err)
	}
	all := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	for _, p := range rig.Processes(b) {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.PID))
		if err != nil {
			b.Fatal(err)
		}
		for _, path := range threads {
			var ran time.Duration // in nanoseconds, Documentation/scheduler/sched-stats.rst
			if text, err := os.ReadFile(path); err == nil {
				fmt.Sscan(string(text), &ran)
			}
			all += ran
		}
	}
	return all
}
