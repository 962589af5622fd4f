package helper

import (
	"context"

	"github.com/gominimal/minhost/installer/api"
)

// listen hands out a socket on the address of an attached box, made inside its leaf.
func (h *Helper) listen(_ context.Context, c request, in api.ListenIn) (api.ListenOut, error) {
	if _, err := h.use(c, in.Lease, in.Secret); err != nil {
		return api.ListenOut{}, err
	}
	return api.ListenOut{}, &api.NotSupported{Message: "this helper makes no listeners", Next: "minhost version"}
}
