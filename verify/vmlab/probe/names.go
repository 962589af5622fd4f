package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
)

// lookup prints the addresses that a static Go program finds.
func lookup(name string) error {
	r := net.Resolver{PreferGo: true}
	ctx, cancel := context.WithTimeout(context.Background(), 20*limit)
	defer cancel()
	all, err := r.LookupNetIP(ctx, "ip4", name)
	for _, a := range all {
		fmt.Println(a.Unmap())
	}
	return err
}

// serve answers every request with one line.
func serve(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println("up")
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }))
}
