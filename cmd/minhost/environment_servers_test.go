package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/api"
)

// TestServerVariables: names are opened for a named box, addresses are set where localhost is shared, and
// nothing that the caller has set is changed.
func TestServerVariables(t *testing.T) {
	own := api.PlanOut{Name: "web", Address: "127.0.64.1", Localhost: api.LocalhostOwn}
	shared := own
	shared.Localhost = api.LocalhostShared
	for name, c := range map[string]struct {
		environ   []string
		plan      api.PlanOut
		want, not []string
	}{
		"own localhost": {nil, own, []string{"__VITE_ADDITIONAL_SERVER_ALLOWED_HOSTS=.min.internal", "NG_ALLOWED_HOSTS=*.min.internal", "RAILS_DEVELOPMENT_HOSTS=.min.internal"}, []string{"HOST=", "BINDING="}},
		"shared":        {nil, shared, []string{"HOST=127.0.64.1", "BINDING=127.0.64.1", "UVICORN_HOST=127.0.64.1", "RAILS_DEVELOPMENT_HOSTS=.min.internal"}, nil},
		"set by the caller": {[]string{"HOST=0.0.0.0", "RAILS_DEVELOPMENT_HOSTS="}, shared, []string{"BINDING=127.0.64.1"},
			[]string{"HOST=", "RAILS_DEVELOPMENT_HOSTS="}},
		"a longer name":  {[]string{"HOSTNAME=x"}, shared, []string{"HOST=127.0.64.1"}, nil},
		"nameless":       {nil, api.PlanOut{Address: "127.65.0.1", Localhost: api.LocalhostOwn}, nil, []string{"__VITE", "NG_", "HOST="}},
		"without either": {nil, api.PlanOut{}, nil, []string{"HOST=", "__VITE"}},
	} {
		got := serverVariables(c.environ, c.plan)
		for _, w := range c.want {
			if !slices.Contains(got, w) {
				t.Errorf("%s: no %s in %v", name, w, got)
			}
		}
		for _, prefix := range c.not {
			if slices.ContainsFunc(got, func(v string) bool { return strings.HasPrefix(v, prefix) }) {
				t.Errorf("%s: %s in %v", name, prefix, got)
			}
		}
	}
}
