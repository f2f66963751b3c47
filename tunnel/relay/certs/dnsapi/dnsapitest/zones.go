// Package dnsapitest provides stand-ins for the APIs of DNS hosts, written from the
// hosts' documentation. They check credentials and signatures independently, return lists
// in small pages, and fail on request. It is for tests only.
package dnsapitest

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Record is one value of a name.
type Record struct {
	ID, Name, Type, Value string
	TTL                   int
}

// Fault is an answer to give instead of the right one.
type Fault struct {
	Status int
	Header map[string]string
	Body   string
}

// Zones is what a stand-in serves. Names are full and without a trailing dot.
type Zones struct {
	// PageSize is the maximum length of an answer's list, whatever is requested.
	PageSize int

	mu      sync.Mutex
	names   []string
	private map[int]bool
	records map[string][]Record // by zone
	last    int
	faults  []Fault
	asked   []string
	refused []string
	changes int
	lose    bool   // lose the next change's answer
	before  func() // runs once, between the reading and the writing of a change
}

// NewZones returns zones with the given names. They contain records that no challenge may
// touch.
func NewZones(names ...string) *Zones {
	z := &Zones{PageSize: 2, private: make(map[int]bool), records: make(map[string][]Record)}
	for _, name := range names {
		z.AddPublic(name)
	}
	return z
}

// AddPublic adds a zone with some records.
func (z *Zones) AddPublic(name string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.names = append(z.names, name)
	z.add(name, Record{Name: name, Type: "TXT", Value: "v=spf1 -all", TTL: 300})
	z.add(name, Record{Name: "www." + name, Type: "A", Value: "192.0.2.1", TTL: 300})
	z.add(name, Record{Name: "_acme-challenge.other." + name, Type: "TXT", Value: "theirs", TTL: 120})
	z.add(name, Record{Name: "_acme-challenge." + name, Type: "CAA", Value: "0 issue", TTL: 120})
}

// AddPrivate adds a zone with that name that is not public.
func (z *Zones) AddPrivate(name string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.names = append(z.names, name)
	z.private[len(z.names)-1] = true
}

// add creates a record. The caller must hold mu or be alone.
func (z *Zones) add(zone string, r Record) string {
	z.last++
	r.ID = strconv.Itoa(1000 + z.last)
	z.records[zone] = append(z.records[zone], r)
	return r.ID
}

// Fail answers the next requests with faults, one each.
func (z *Zones) Fail(faults ...Fault) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.faults = append(z.faults, faults...)
}

// LoseNextChange applies the next change but answers it with 502.
func (z *Zones) LoseNextChange() {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.lose = true
}

// Before runs do once, before the next change takes effect.
func (z *Zones) Before(do func()) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.before = do
}

// Add creates a TXT record on behalf of somebody else.
func (z *Zones) Add(zone, name, value string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.add(zone, Record{Name: name, Type: "TXT", Value: value, TTL: 60})
}

// Texts returns the values of a name's TXT records.
func (z *Zones) Texts(name string) []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	var texts []string
	for _, list := range z.records {
		for _, r := range list {
			if r.Type == "TXT" && r.Name == strings.TrimSuffix(strings.ToLower(name), ".") {
				texts = append(texts, r.Value)
			}
		}
	}
	slices.Sort(texts)
	return texts
}

// All returns the records of all zones, without their ids, in order.
func (z *Zones) All() []Record {
	z.mu.Lock()
	defer z.mu.Unlock()
	var all []Record
	for _, name := range slices.Sorted(maps.Keys(z.records)) {
		for _, r := range z.records[name] {
			r.ID = ""
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b Record) int {
		return strings.Compare(a.Name+" "+a.Type+" "+a.Value, b.Name+" "+b.Type+" "+b.Value)
	})
	return all
}

// Asked returns the requests so far, as "METHOD path" or an action's name.
func (z *Zones) Asked() []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	return slices.Clone(z.asked)
}

// Refused returns why requests were refused as invalid.
func (z *Zones) Refused() []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	return slices.Clone(z.refused)
}

// Changes returns how many changes took effect.
func (z *Zones) Changes() int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.changes
}

// refuse records why a request does not follow the host's documentation.
func (z *Zones) refuse(why string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.refused = append(z.refused, why)
}

// serve records the request, and answers with a fault if one is due.
func (z *Zones) serve(w http.ResponseWriter, what string, do func(http.ResponseWriter)) {
	z.mu.Lock()
	z.asked = append(z.asked, what)
	var fault *Fault
	if len(z.faults) > 0 {
		fault = &z.faults[0]
		z.faults = z.faults[1:]
	}
	before, lose := z.changes, z.lose
	z.mu.Unlock()
	if fault == nil {
		kept := httptest.NewRecorder()
		do(kept)
		z.mu.Lock()
		lost := lose && z.lose && z.changes > before
		if lost {
			z.lose = false
		}
		z.mu.Unlock()
		if !lost {
			maps.Copy(w.Header(), kept.Header())
			w.WriteHeader(kept.Code)
			_, _ = w.Write(kept.Body.Bytes())
			return
		}
		fault = &Fault{Status: http.StatusBadGateway}
	}
	for key, value := range fault.Header {
		w.Header().Set(key, value)
	}
	w.WriteHeader(fault.Status)
	_, _ = w.Write([]byte(fault.Body))
}

// changing runs the function passed to Before. The caller must not hold mu.
func (z *Zones) changing() {
	z.mu.Lock()
	do := z.before
	z.before = nil
	z.mu.Unlock()
	if do != nil {
		do()
	}
}

// page returns a page of a list. from counts from 0.
func page[T any](list []T, from, size int) []T {
	if from >= len(list) || from < 0 {
		return nil
	}
	return list[from:min(len(list), from+size)]
}

// has reports whether a zone has a record. The caller must hold mu.
func (z *Zones) has(zone, name, kind, value string) bool {
	return slices.ContainsFunc(z.records[zone], func(r Record) bool { return r.Name == name && r.Type == kind && r.Value == value })
}

// drop removes a record of a zone. The caller must hold mu.
func (z *Zones) drop(zone, id string) bool {
	n := len(z.records[zone])
	z.records[zone] = slices.DeleteFunc(z.records[zone], func(r Record) bool { return r.ID == id })
	return len(z.records[zone]) < n
}

func inZone(name, zone string) bool { return name == zone || strings.HasSuffix(name, "."+zone) }

// full returns the full name of what a zone calls rr.
func full(rr, zone string) string {
	if rr == "@" || rr == "" {
		return zone
	}
	return rr + "." + zone
}

func rest(name, zone string) string {
	if name == zone {
		return "@"
	}
	return strings.TrimSuffix(name, "."+zone)
}
