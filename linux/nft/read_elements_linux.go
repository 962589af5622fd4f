package nft

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

func (c *conn) listElements(ctx context.Context, set string) ([]Element, error) {
	var out []Element
	err := c.dump(ctx, unix.NFT_MSG_GETSETELEM, func(data []byte) error {
		es, err := readElements(data)
		out = append(out, es...)
		return err
	}, attr(unix.NFTA_SET_ELEM_LIST_SET, cstr(set)))
	return out, err
}

// element asks for the element of a map or set that has this key: ENOENT when none has.
func (c *conn) element(ctx context.Context, set, key string, f func(data []byte) error) error {
	var b batch
	return c.get(ctx, unix.NFT_MSG_GETSETELEM, 0, f, attr(unix.NFTA_SET_ELEM_LIST_SET, cstr(set)), b.list([]Element{{Key: key}}, time.Time{}))
}

// find returns that element.
func (c *conn) find(ctx context.Context, set, key string) (e Element, present bool, err error) {
	err = c.element(ctx, set, key, func(data []byte) error {
		es, err := readElements(data)
		if err == nil && len(es) == 1 {
			e, present = es[0], true
		}
		return err
	})
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return Element{}, false, fmt.Errorf("look into set %s: %w", set, err)
	}
	return e, present, nil
}

func readElements(data []byte) ([]Element, error) {
	var out []Element
	err := attributes(data, func(t uint16, v []byte) error {
		if t != unix.NFTA_SET_ELEM_LIST_ELEMENTS {
			return nil
		}
		return attributes(v, func(_ uint16, v []byte) error {
			var e Element
			value := func(to *string, v []byte) error {
				return attributes(v, func(t uint16, v []byte) error {
					if t == unix.NFTA_DATA_VALUE {
						*to = string(v)
					}
					return nil
				})
			}
			err := attributes(v, func(t uint16, v []byte) error {
				switch t {
				case unix.NFTA_SET_ELEM_KEY:
					return value(&e.Key, v)
				case setElemKeyEnd:
					return value(&e.End, v)
				case unix.NFTA_SET_ELEM_DATA:
					return value(&e.Data, v)
				case unix.NFTA_SET_ELEM_USERDATA:
					e.Until = readLifetime(v)
				}
				return nil
			})
			out = append(out, e)
			return err
		})
	})
	return out, err
}
