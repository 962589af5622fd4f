package main

import "github.com/gominimal/minhost/linux"

func newPlatform() platform {
	l := linux.DefaultLayout()
	p := unsupported("linux")
	p.Socket, p.Operators = l.Socket, l.Operators
	p.Files = disk
	return p
}
