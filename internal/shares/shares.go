// Package shares bounds what many have together of something that strangers can ask for in
// a client's name, as visits with forged addresses: where all of it is taken, those have
// more who have less than their part.
package shares

import "sync"

// Shares counts what clients have. Its zero value counts nothing.
type Shares struct {
	mu  sync.Mutex
	all int
	of  map[string]int
}

// Take counts one more of a client, if there may be one. Where there are most, or more, a
// client has one only if it has fewer than its part of them: what is asked for in one
// client's name keeps no other out. So there are never twice as many.
func (s *Shares) Take(client string, most int) bool {
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

// Give counts one less of a client.
func (s *Shares) Give(client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.of[client]--; s.of[client] == 0 {
		delete(s.of, client)
	}
}

// Taken is how many there are now, of how many clients.
func (s *Shares) Taken() (all, clients int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all, len(s.of)
}
