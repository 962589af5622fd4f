package main

import (
	"slices"
	"strings"

	"github.com/gominimal/minhost/installer/api"
)

// boxNames is the zone as allow lists of servers write "every name below".
const boxNames = ".min.internal"

// variable is one setting in an environment.
type variable struct{ name, value string }

// hostChecks open the Host checks of dev servers for names of the zone. They refuse names that they do
// not know so that a page elsewhere cannot reach them by DNS rebinding; a name of the zone resolves on
// this host only, and only to the box. Read from the sources of vite 5.4 to 7, @angular/ssr 21, Rails 6.1 and
// newer. What takes no variable (webpack-dev-server by itself, Next's cross-site check, Django) is
// listed in minhost(8) with the setting that it takes.
func hostChecks() []variable {
	return []variable{
		{"__VITE_ADDITIONAL_SERVER_ALLOWED_HOSTS", boxNames}, // vite and all that is built on it; one host
		{"NG_ALLOWED_HOSTS", "*" + boxNames},                 // Angular's own server
		{"RAILS_DEVELOPMENT_HOSTS", boxNames},                // Rails
	}
}

// listenAt make dev servers listen on an address, where the box has no localhost of its own and two of
// them would want the same port.
func listenAt(address string) []variable {
	var out []variable
	for _, name := range []string{
		"HOST",                     // Create React App, Nuxt, Gatsby, Remix, many small servers
		"NITRO_HOST",               // Nitro, Nuxt 3
		"NUXT_HOST",                // Nuxt
		"BINDING",                  // rails server
		"FLASK_RUN_HOST",           // flask run
		"UVICORN_HOST",             // uvicorn
		"GRADIO_SERVER_NAME",       // Gradio
		"STREAMLIT_SERVER_ADDRESS", // Streamlit
	} {
		out = append(out, variable{name, address})
	}
	return out
}

// serverVariables are what the dev servers of a box read. What the caller has set already stays as it is.
func serverVariables(environ []string, plan api.PlanOut) []string {
	if plan.Address == "" {
		return nil
	}
	var all []variable
	if plan.Name != "" {
		all = hostChecks()
	}
	if plan.Localhost != api.LocalhostOwn {
		all = append(all, listenAt(plan.Address)...)
	}
	var out []string
	for _, v := range all {
		if !slices.ContainsFunc(environ, func(have string) bool { return strings.HasPrefix(have, v.name+"=") }) {
			out = append(out, v.name+"="+v.value)
		}
	}
	return out
}
