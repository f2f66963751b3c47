package webhook

import (
	"net/netip"
	"sync"

	"adit/tunnel/relay/policy"
)

// A webhook's body is held until its signature has been verified. Anybody may send one, so
// both the number of bytes held and the time that a body may take are limited.
const (
	heldOfAddress  = policy.MaxWebhookBody + 2*lastPart // at one endpoint: the longest possible body, or many short ones
	heldOfEndpoint = 64 << 20
	heldOfAll      = 256 << 20
)

// looks is how many bodies are examined to find one that makes room: there may be tens of
// thousands, many of them small.
const looks = 512

// Room is what all endpoints together may hold. The zero value is empty.
type Room struct {
	mu     sync.Mutex // also guards what endpoints hold
	all    held
	coming map[*keptBody]int64 // bodies that are arriving, with the bytes that each holds so far
}

// Holding counts the bytes held for one endpoint. Of is the room that it shares.
type Holding struct {
	Of *Room

	held held
}

// held counts bytes, in total and by address.
type held struct {
	all     int64
	leaving int64 // of all, bytes of bodies that are making room
	by      map[netip.Prefix]int64
}

func (h *held) add(from netip.Prefix, n int64) {
	if h.by == nil {
		h.by = make(map[netip.Prefix]int64)
	}
	h.all += n
	if h.by[from] += n; h.by[from] <= 0 {
		delete(h.by, from)
	}
}

// begin notes that a body is arriving. It may have to make room for others.
func (h *Holding) begin(k *keptBody) {
	h.Of.mu.Lock()
	defer h.Of.mu.Unlock()
	if h.Of.coming == nil {
		h.Of.coming = make(map[*keptBody]int64)
	}
	h.Of.coming[k] = 0
}

// come notes that a body has arrived, or will not.
func (h *Holding) come(k *keptBody) {
	h.Of.mu.Lock()
	defer h.Of.mu.Unlock()
	delete(h.Of.coming, k)
}

// take reserves room for n more bytes of a body. It reports false if there is none and no
// other body makes room.
func (h *Holding) take(k *keptBody, n int64) bool {
	spared, room := h.makeRoom(k, n)
	for _, s := range spared {
		s.end()
	}
	return room
}

// makeRoom is take without ending the bodies that make room, which it returns. Until they have
// gone, an eighth more than the limit may be held.
func (h *Holding) makeRoom(k *keptBody, n int64) (spared []*keptBody, room bool) {
	r := h.Of
	r.mu.Lock()
	defer r.mu.Unlock()
	if k.spared || h.held.by[k.from]+n > heldOfAddress {
		return nil, false
	}
	for _, bound := range []struct {
		of   *Holding // nil: any
		held *held
		most int64
	}{{h, &h.held, heldOfEndpoint}, {nil, &r.all, heldOfAll}} {
		all := bound.held.all + n
		if all > bound.most+bound.most/8 {
			return nil, false
		}
		if all-bound.held.leaving <= bound.most || len(spared) > 0 { // a body that makes room in one makes room in the other
			continue
		}
		s := r.crowded(bound.of, bound.held, k, n)
		if s == nil {
			return nil, false
		}
		spared = append(spared, s)
	}
	for _, s := range spared {
		if !s.spared {
			s.spared = true
			s.of.held.leaving += r.coming[s]
			r.all.leaving += r.coming[s]
			delete(r.coming, s)
		}
	}
	h.held.add(k.from, n)
	r.all.add(k.from, n)
	if _, coming := r.coming[k]; coming {
		r.coming[k] += n
	}
	return spared, true
}

// crowded returns the longest arriving body of the address that holds the most, if that is at
// least twice what k's address will hold; otherwise nil. The caller holds r.mu.
func (r *Room) crowded(of *Holding, held *held, k *keptBody, n int64) (longest *keptBody) {
	least, left := 2*(held.by[k.from]+n), looks
	for s, size := range r.coming { // in random order
		if left--; left < 0 {
			break
		}
		share := held.by[s.from]
		if of != nil && s.of != of || size == 0 || share < least {
			continue
		}
		if longest == nil || share > held.by[longest.from] || share == held.by[longest.from] && size > r.coming[longest] {
			longest = s
		}
	}
	return longest
}

func (h *Holding) give(k *keptBody, n int64) {
	h.Of.mu.Lock()
	defer h.Of.mu.Unlock()
	h.held.add(k.from, -n)
	h.Of.all.add(k.from, -n)
	if k.spared {
		h.held.leaving -= n
		h.Of.all.leaving -= n
	}
	if _, coming := h.Of.coming[k]; coming {
		h.Of.coming[k] -= n
	}
}

// Bytes returns how many bytes are held for requests that are waiting for verification or
// being forwarded.
func (h *Holding) Bytes() int64 {
	h.Of.mu.Lock()
	defer h.Of.mu.Unlock()
	return h.held.all
}
