// Package proc holds one process still for questions: a pidfd and the open /proc/PID directory, so
// that every answer is about the process that was asked for, never about a later one with its number.
//
// It tells who the process is (uids, pid namespace, start time), what hangs on it (children) and
// which of its descriptors reach past a verdict (sockets, io_uring). It decides nothing: the helper
// does (installer/helper).
//
// Beware: Holdings is a picture of one moment. It is worth something only for a process that is held
// (stopped, or blocked before exec). It cannot see sockets that wait, in flight, in the queue of a
// unix socket, nor what another process will pass in later.
package proc
