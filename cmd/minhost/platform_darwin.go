package main

func newPlatform() platform {
	const state = "/Library/Application Support/minhost"
	p := unsupported("darwin")
	p.Socket = state + "/run/helper.sock"
	p.Operators = state + "/operators"
	p.Files = disk
	return p
}
