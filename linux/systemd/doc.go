// Package systemd renders the units of minhost, tells which service manager the host has, and holds
// the step that writes and enables the units.
//
// Rendering and detection are pure: they run and are tested on every system. The package does not
// run the services and does not speak the readiness protocol; where the host has no systemd,
// linux/standalone takes its place.
package systemd
