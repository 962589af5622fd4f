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

// find returns the element of a map or set that has this key.
func (c *conn) find(ctx context.Context, set string, key string) (Element, bool, error) {
	var b batch
	b.put(unix.NFT_MSG_GETSETELEM, 0, attr(unix.NFTA_SET_ELEM_LIST_SET, cstr(set)), b.list([]Element{{Key: key}}, time.Time{}))
	answers, err := c.request(ctx, b.messages[0])
	if errors.Is(err, unix.ENOENT) {
		return Element{}, false, nil
	}
	if err != nil {
		return Element{}, false, fmt.Errorf("look into set %s: %w", set, err)
	}
	for _, a := range answers {
		if len(a.Data) < 4 {
			continue
		}
		es, err := readElements(a.Data[4:])
		if err == nil && len(es) == 1 {
			return es[0], true, nil
		}
	}
	return Element{}, false, nil
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
