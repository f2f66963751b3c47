package webhook

import (
	"net/netip"
	"sync"

	"adit/tunnel/relay/policy"
)

// A webhook's body is held until its signature is found right. Anybody may send
// one, so what is held at once is bounded, and so is the time for it to come.
const (
	heldOfAddress  = policy.MaxWebhookBody + 2*lastPart // at one endpoint: the longest body, or many short ones
	heldOfEndpoint = 64 << 20
	heldOfAll      = 256 << 20
)

// looks is how many bodies are looked at for one that makes room: there may be tens of
// thousands, of which many are small.
const looks = 512

// Room is what may be held of all endpoints together. The zero value is empty.
type Room struct {
	mu     sync.Mutex // guards what is held of endpoints, too
	all    held
	coming map[*keptBody]int64 // what each holds by now
}

// Holding counts what is held of one endpoint's bodies, of which Of is the room.
type Holding struct {
	Of *Room

	held held
}

// held is what is held, together and of each address.
type held struct {
	all     int64
	leaving int64 // of it, by bodies that make room
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

// begin notes that a body is coming, which may have to make room for others.
func (h *Holding) begin(k *keptBody) {
	h.Of.mu.Lock()
	defer h.Of.mu.Unlock()
	if h.Of.coming == nil {
		h.Of.coming = make(map[*keptBody]int64)
	}
	h.Of.coming[k] = 0
}

// come notes that a body has come, or does not come any more.
func (h *Holding) come(k *keptBody) {
	h.Of.mu.Lock()
	defer h.Of.mu.Unlock()
	delete(h.Of.coming, k)
}

// take takes room for n more bytes of a body, if there is some or others make it.
func (h *Holding) take(k *keptBody, n int64) bool {
	spared, room := h.makeRoom(k, n)
	for _, s := range spared {
		s.end()
	}
	return room
}

// makeRoom is take but for the bodies that make room, which are to be ended. Until they have
// gone there is an eighth more for those who come instead.
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
		if all-bound.held.leaving <= bound.most || len(spared) > 0 { // who leaves the one leaves the other
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

// crowded is the longest body that is coming of the address of which most is held, if that
// is twice as much as there will be of k's; nil: there is none. r.mu is held.
func (r *Room) crowded(of *Holding, held *held, k *keptBody, n int64) (longest *keptBody) {
	least, left := 2*(held.by[k.from]+n), looks
	for s, size := range r.coming { // in no order
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

// Bytes is how many are held of requests whose signatures are to be checked, or that
// go on.
func (h *Holding) Bytes() int64 {
	h.Of.mu.Lock()
	defer h.Of.mu.Unlock()
	return h.held.all
}
