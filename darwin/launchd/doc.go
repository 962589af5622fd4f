// Package launchd renders the jobs of minhost, brings them in and out of launchd, and takes over the
// sockets that launchd holds.
//
// Its Step is a file of the engine with a running job behind it. What it believes is evidence of the
// job's own (an answer, 254 addresses); what launchctl prints is a hint for people. It knows no job of
// anybody else, never disables a label and never unloads by file ("load" and "unload" are deprecated and
// answer 0 when they did nothing).
//
// Beware: bootstrap returns before the job ran, bootout before it ended, and a label stays busy for 3 to
// 5 s after it (macOS 26.5).
package launchd
