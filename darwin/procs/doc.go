// Package procs reads processes of a Mac and waits for their end.
//
// macOS has no handle of a process that outlives it, so a process is its pid together with the time at
// which it started: what has another start is another process. Nothing here changes a process.
package procs
