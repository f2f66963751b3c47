package relay

// byAgentLen returns how many sessions each agent has on other nodes.
func (f *far) byAgentLen() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []int
	for _, sessions := range f.byAgent {
		list = append(list, len(sessions))
	}
	return list
}
