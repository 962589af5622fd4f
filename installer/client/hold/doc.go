// Package hold starts a child that waits before its first instruction, so that a runner can have
// it put into its leaf while it cannot have opened a socket yet: a socket keeps the cgroup that it
// was created in for ever (DESIGN.md section 5.1).
//
// It needs no root and no ptrace: Start runs the current program again under a hidden subcommand
// (Command, served by Main), which blocks on a pipe until Release tells it what to execute. When
// the starter dies before that, the pipe ends and the target never runs.
//
// It calls no helper and decides nothing about boxes. Terminal, beside it, hands the terminal to
// the child and back, as a shell does for a job.
//
// Beware: everything but the standard descriptors is closed behind the target's back. A child
// that shall inherit a descriptor cannot be started with this package.
package hold
