package store

import "encoding/json"

// Change is a write as its node tells it to the others beside the cluster: a node
// whose server of the cluster hangs hears of a write by no other way for up to
// fifteen seconds.
type Change struct {
	Table    string          `json:"table"`
	Key      string          `json:"key"`
	Revision uint64          `json:"revision"` // written, or removed
	Removed  bool            `json:"removed,omitempty"`
	Value    json.RawMessage `json:"value,omitempty"`
}

// toldTables are those that nodes tell each other of: who may connect, what they
// have, and who is let in. What else there is can wait for the watch.
var toldTables = map[string]bool{"clients": true, "claims": true, "policies": true}

// OnWrite has f told of this node's own writes that others should know of at
// once, after they were acknowledged. f must not wait.
func (s *Store) OnWrite(f func(Change)) {
	told := func(c Change) {
		if toldTables[c.Table] {
			f(c)
		}
	}
	s.wrote.Store(&told)
}

// Told takes what another node has written. The bucket's revisions decide: what
// is known already, or is older than what is known, changes nothing.
func (s *Store) Told(c Change) {
	if !toldTables[c.Table] || c.Key == "" || c.Revision == 0 {
		return
	}
	s.loading.Lock()
	t := s.byName[c.Table]
	s.loading.Unlock()
	if t != nil {
		t.told(c)
	}
}

func (t *table[T]) told(c Change) {
	if c.Removed {
		t.unset(c.Key, c.Revision)
		return
	}
	var v T
	if err := json.Unmarshal(c.Value, &v); err != nil {
		t.log.Warn("another node told of a value that does not parse", "table", t.name, "error", err)
		return
	}
	t.set(c.Key, v, c.Revision)
}
