//go:build !linux && !darwin

package main

func newPlatform() platform { return unsupported("this system") }
