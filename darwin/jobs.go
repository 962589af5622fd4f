package darwin

import (
	"context"
	"net/netip"
	"path"

	"github.com/gominimal/minhost/darwin/launchd"
	"github.com/gominimal/minhost/installer"
)

// Labels of the jobs.
const (
	LoopbackLabel = "dev.minimal.loopback"
	AnswererLabel = "dev.minimal.resolverd"
	HelperLabel   = "dev.minimal.helper"
)

// Ids of the steps that load them. "helper" is a row of verify too: one fact, seen twice.
const (
	LoopbackID installer.ID = "loopback"
	AnswererID installer.ID = "answerer"
	HelperID   installer.ID = "helper"
)

// AnswererUser runs the answerer: it reads one file that everybody may read, and launchd binds its port.
const AnswererUser = "nobody"

// Evidence is how the jobs show that they work, and what is to be known of the host.
type Evidence struct {
	Answerer, Helper func(context.Context) error
	// PortFree fails when somebody else has the answerer's port.
	PortFree func(context.Context) error
	// AnswererUID is AnswererUser's number, for the log.
	AnswererUID int
	// Config is the admin's.
	Config Config
	// CleanRun removes what the helper made.
	CleanRun func() error
}

// Jobs are the three jobs in the order of apply. digest is the sha256 of the program, in hex.
func Jobs(l Layout, digest string, answerer netip.AddrPort, e Evidence) (loopback, resolverd, helper launchd.Spec) {
	job := func(label string, args ...string) launchd.Job {
		return launchd.Job{Label: label, Program: append([]string{l.Program}, args...), SHA256: digest, Log: path.Join(l.Logs, label+".log")}
	}
	loopback = launchd.Spec{
		ID: LoopbackID, Describe: "have launchd bring the range back at every boot (" + LoopbackLabel + ")",
		Loses: "after a reboot no box gets an address", Job: job(LoopbackLabel, "apply", "--at-boot", "--only", string(RangeID)),
	}
	loopback.Job.OneShot = true
	resolverd = launchd.Spec{
		ID: AnswererID, Describe: "have launchd run the answerer as " + AnswererUser + " (" + AnswererLabel + ")",
		Loses: "names of boxes do not resolve", Job: job(AnswererLabel, "resolverd"), LogOwner: e.AnswererUID,
		Free: e.PortFree, Works: e.Answerer,
	}
	resolverd.Job.User = AnswererUser
	if !e.Config.OwnSockets {
		resolverd.Job.Listen = []netip.AddrPort{answerer}
	}
	helper = launchd.Spec{
		ID: HelperID, Describe: "have launchd run the helper as root (" + HelperLabel + ")",
		Loses: "no box can start", Job: job(HelperLabel, "helper"), Works: e.Helper, Clean: e.CleanRun,
	}
	return loopback, resolverd, helper
}
