package nft

import (
	"context"
	"errors"
	"fmt"

	"github.com/gominimal/minhost/installer/lease"
	"golang.org/x/sys/unix"
)

// Compare reads the kernel and says, one line each, what differs from these verdicts. Policy ids are
// taken from the kernel, so that it may have been written by another process.
func (t *Table) Compare(ctx context.Context, all []lease.Verdict) ([]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	have, err := t.conn.list(ctx, true)
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	elements, lines := t.withKernelIDs(all, have)
	return append(lines, differences(ruleset(t.config, elements), have, true)...), nil
}

// withKernelIDs returns the elements that the verdicts need under the ids that the kernel has for
// their leaves. Leaves that it does not know get ids that it does not use.
func (t *Table) withKernelIDs(all []lease.Verdict, have listed) (elements []setElement, lines []string) {
	ids, free := have.policies(), uint32(0)
	for _, id := range ids {
		free = max(free, id)
	}
	policies := map[uint32]string{}
	fresh := map[string]uint32{}
	for _, v := range all {
		c := compile(v.Policy)
		key := c.key()
		id, ok := ids[v.Leaf]
		if !ok {
			lines = append(lines, fmt.Sprintf("leaf %d of lease %d is not in the table: it is refused everything", v.Leaf, v.Number))
			if fresh[key] == 0 {
				free++
				fresh[key] = free
			}
			id = fresh[key]
		}
		elements = append(elements, leafElements(t.config.Marks, v, id)...)
		switch other, ok := policies[id]; {
		case !ok:
			policies[id] = key
			elements = append(elements, c.elements(id)...)
		case other != key:
			lines = append(lines, fmt.Sprintf("leaf %d of lease %d shares policy %d with a leaf of other rules", v.Leaf, v.Number, id))
		}
	}
	return elements, lines
}

// Probe says whether the table is in the kernel and how its structure differs from the skeleton:
// chains, rules and sets, not the elements of boxes. It only reads.
func (t *Table) Probe(ctx context.Context) (present bool, differ []string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	have, err := t.conn.list(ctx, false)
	if err != nil {
		return false, nil, fmt.Errorf("probe: %w", err)
	}
	return have.present, differences(ruleset(t.config, nil), have, false), nil
}

// Destroy removes our table and nothing else. No error when it is not there.
func (t *Table) Destroy(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.synced = false
	t.state = newState(t.config.Marks)
	var b batch
	b.delTable()
	if err := t.conn.send(ctx, &b); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("delete table inet %s: %w", tableName, err)
	}
	if _, present, err := t.conn.tableFlags(ctx); err != nil || present {
		return errors.Join(err, fmt.Errorf("delete table inet %s: it is still there", tableName))
	}
	return nil
}

// Elements is the number of interval elements that the verdicts cost together: rules, deny subnets
// and ingress ports. Equal policies share theirs. What every leaf has besides (some 13 elements of
// hash sets) costs the same whatever the number, and is not counted.
func (t *Table) Elements(all []lease.Verdict) int {
	n := 0
	done := map[string]bool{}
	for _, v := range all {
		n += len(ingressElements(t.config.Marks, v))
		c := compile(v.Policy)
		if key := c.key(); !done[key] {
			done[key] = true
			n += len(c.elements(0))
		}
	}
	return n
}
