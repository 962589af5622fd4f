// Package hold starts a child that waits before its first instruction, so that a runner can have
// it put into its leaf while it cannot have opened a socket yet: a socket keeps the cgroup that it
// was created in for ever (DESIGN.md section 5.1).
//
// It needs no root and no ptrace: Start runs the current program again under a hidden subcommand
// (Command, served by Main), which blocks on a socket until Release tells it what to execute. When
// the starter dies before that, the stream ends and the target never runs.
//
// A target is executed in the child's place, or, when it has something Within, by a Launcher of the
// program's own: one that makes namespaces, say. The child then stays as the launcher and tells how
// the target does.
//
// It calls no helper and decides nothing about boxes. Terminal, beside it, hands the terminal to
// the child and back, as a shell does for a job.
//
// Beware: everything but the standard descriptors is closed behind the target's back. What it shall
// have beside them comes with the Target.
package hold
