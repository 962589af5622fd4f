// Package api is the wire of the helper: the varlink interface dev.minimal.Host, the Go types
// generated from it, the strict check of a call message and the printable form of untrusted text.
//
// It opens no socket and decides nothing: installer/helper serves the interface and
// installer/client calls it. types_gen.go is written by internal/gen from
// dev.minimal.Host.varlink, which is the contract; a test fails when the two differ.
//
// Beware: encoding/json alone is no check. It takes fields in another letter case, doubled and
// unknown ones and trailing data; a server calls Strict on the whole message before it decodes.
package api

//go:generate go run ./internal/gen dev.minimal.Host.varlink types_gen.go

import _ "embed"

// Description is the interface as GetInterfaceDescription gives it.
//
//go:embed dev.minimal.Host.varlink
var Description string
