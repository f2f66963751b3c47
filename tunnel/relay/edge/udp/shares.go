package udp

import "sync"

// shares counts the flows of all ports by client: a client may have any number of ports,
// and packets with forged addresses begin as many flows as somebody likes. Its zero value
// counts none.
type shares struct {
	mu  sync.Mutex
	all int
	of  map[string]int
}

// take counts a flow of a client, if there may be one. Where there are most, or more, a
// client has one only if it has fewer than its part of them: what one client's visitors
// take, or who poses as them, keeps no other's out. So there are never twice as many.
func (s *shares) take(client string, most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, clients := s.of[client], len(s.of)
	if n == 0 {
		clients++
	}
	if s.all >= most && n >= most/clients {
		return false
	}
	if s.of == nil {
		s.of = make(map[string]int)
	}
	s.all++
	s.of[client]++
	return true
}

// give counts a flow of a client no more.
func (s *shares) give(client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.of[client]--; s.of[client] == 0 {
		delete(s.of, client)
	}
}
