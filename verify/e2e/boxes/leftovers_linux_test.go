package boxes

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/linux"
	"github.com/gominimal/minhost/resolverd/zonefile"
)

// clean requires that nothing of a box is left on the host, within the two seconds that a lost
// connection or a killed helper may take, and some more for a slow machine.
func (h *host) clean() {
	h.Helper()
	deadline := time.Now().Add(4 * time.Second)
	err := h.leftovers()
	for err != nil && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
		err = h.leftovers()
	}
	if err != nil {
		h.Errorf("left over: %v", err)
	}
}

// leftovers says what of any box is still there: lease, record, leaf, element, conntrack mark, name.
func (h *host) leftovers() error {
	leases, err := h.leases()
	if err != nil {
		return err
	}
	var errs []error
	for _, l := range leases {
		errs = append(errs, fmt.Errorf("lease %s %s %s", l.Lease, l.Name, l.State))
	}
	leaves, err := leafNames()
	if err != nil || len(leaves) > 0 {
		errs = append(errs, fmt.Errorf("leaves %v, %v", leaves, err))
	}
	records, err := recordNames()
	if err != nil || len(records) > 0 {
		errs = append(errs, fmt.Errorf("records %v, %v", records, err))
	}
	sets, err := elements()
	if err != nil || len(sets) > 0 {
		errs = append(errs, fmt.Errorf("elements %v, %v", sets, err))
	}
	homes, err := homes()
	if err != nil || len(homes) > 0 {
		errs = append(errs, fmt.Errorf("homes %v, %v", homes, err))
	}
	flows, err := markedFlows()
	if err != nil || len(flows) > 0 {
		errs = append(errs, fmt.Errorf("conntrack entries %q, %v", flows, err))
	}
	names, err := zoneNames()
	if err != nil || len(names) > 0 {
		errs = append(errs, fmt.Errorf("names %v, %v", names, err))
	}
	return errors.Join(errs...)
}

func leafNames() (names []string, err error) {
	entries, err := os.ReadDir(boxesDir)
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// recordNames are the helper's records of leases.
func recordNames() (names []string, err error) {
	entries, err := os.ReadDir(layout.Leases)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".json") {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// elements counts the elements of every set of our table but those that no box has: the answerer's, kinds of
// addresses, and the memory of refusals, which times out.
func elements() (map[string]int, error) {
	out, err := exec.Command("nft", "-j", "list", "table", "inet", "minhost").Output()
	if err != nil {
		return nil, fmt.Errorf("nft list table: %w", err)
	}
	type set struct {
		Name string
		Elem []json.RawMessage
	}
	var listing struct {
		Nftables []struct{ Set, Map *set }
	}
	if err := json.Unmarshal(out, &listing); err != nil {
		return nil, err
	}
	found := map[string]int{}
	sets := 0
	for _, o := range listing.Nftables {
		for _, s := range []*set{o.Set, o.Map} {
			if s == nil {
				continue
			}
			sets++
			if len(s.Elem) > 0 && s.Name != "answerer4" && s.Name != "answerer6" && s.Name != "noise" && s.Name != "shared" {
				found[s.Name] = len(s.Elem)
			}
		}
	}
	if sets < 20 {
		return nil, fmt.Errorf("only %d sets listed", sets)
	}
	return found, nil
}

// homes counts what the programs of own localhosts know of boxes.
func homes() (map[string]int, error) {
	ground := linux.Ground{Rel: "minhost"}
	t, err := ground.Tree()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	h, err := ground.HomesOf(t)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	return h.Entries(), nil
}

var markPattern = regexp.MustCompile(`\bmark=(\d+)`)

// markedFlows are the conntrack entries that carry a lease.
func markedFlows() (flows []string, err error) {
	out, err := exec.Command("conntrack", "-L").Output()
	if err != nil {
		return nil, fmt.Errorf("conntrack -L: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if m := markPattern.FindStringSubmatch(line); m != nil {
			mark, _ := strconv.ParseUint(m[1], 10, 32)
			if mark&0x30000000 != 0 {
				flows = append(flows, strings.TrimSpace(line))
			}
		}
	}
	return flows, nil
}

// zoneNames reads what the answerer is told.
func zoneNames() (names []string, err error) {
	text, err := os.ReadFile(layout.Zone)
	if err != nil {
		return nil, err
	}
	f, err := zonefile.Decode(text)
	for name := range f.Names {
		names = append(names, name)
	}
	return names, err
}

// verified requires that the checks that root makes find nothing wrong.
func (h *host) verified() {
	h.Helper()
	out, err := h.dial(0).Verify(h.ctx())
	h.must(err)
	for _, c := range out.Checks {
		if c.State != api.CheckStateOK {
			h.Errorf("verify: %s: %s: %s", c.Name, c.State, c.Detail)
		}
	}
	if len(out.Checks) < 5 {
		h.Errorf("verify made %d checks", len(out.Checks))
	}
}
