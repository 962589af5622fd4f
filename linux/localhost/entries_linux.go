package localhost

// Entries counts what the maps have, by the name of the map without the project's. For checks: when no box
// lives every one is 0.
func (h *Homes) Entries() map[string]int {
	out := map[string]int{}
	for short, name := range map[string]string{"homes": mapHomes, "owners": mapOwners, "ports": mapPorts, "sixes": mapSixes} {
		var key, value []byte
		for it := h.maps[name].Iterate(); it.Next(&key, &value); {
			out[short]++
		}
	}
	return out
}
