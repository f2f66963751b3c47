package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oschwald/maxminddb-golang/v2"

	"adit/tunnel/relay/config"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/store"
)

const (
	geoCheck   = 10 * time.Second
	hoursCheck = time.Second
)

// policies are the policies in force, by target.
type policies struct {
	mu       sync.RWMutex
	byTarget map[string]*policy.Policy
	geo      atomic.Pointer[geoDatabase]
	geoFault atomic.Pointer[string] // why a new database is not used; nil: none
}

func (p *policies) get(target string) *policy.Policy {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.byTarget[target]
}

// place is where an address is, as DE or US-CA; "" if that is not known.
func (p *policies) place(a netip.Addr) string {
	db := p.geo.Load()
	if db == nil {
		return ""
	}
	country, region, known := db.Country(a.Unmap().WithZone(""))
	if !known {
		return ""
	}
	if region != "" {
		return country + "-" + region
	}
	return country
}

func (p *policies) database() policy.Geo {
	if db := p.geo.Load(); db != nil {
		return db
	}
	return nil
}

// openPolicies reads the policies and follows their changes, of this node and others.
func (r *Relay) openPolicies() error {
	if r.cfg.Geo.Database != "" {
		db, err := openGeo(r.cfg.Geo.Database)
		if err != nil {
			return err
		}
		r.policies.geo.Store(db)
	}
	r.policies.byTarget = make(map[string]*policy.Policy)
	r.store.Policies.OnValues(r.policyChanged)
	return nil
}

func (r *Relay) policyChanged(target string, stored store.StoredPolicy, exists bool) {
	r.policies.mu.Lock()
	before := r.policies.byTarget[target]
	r.policies.mu.Unlock()
	var next *policy.Policy
	if exists {
		var d policy.Document
		if err := json.Unmarshal(stored.Document, &d); err != nil {
			// Nobody is let in by a policy that cannot be read.
			r.log.Error("a stored policy does not parse; its target is closed", "target", target, "error", err)
			d = policy.Document{Deny: []string{"0.0.0.0/0", "::/0"}}
		}
		if err := r.knownProvider(d.SignIn); err != nil {
			r.log.Warn("a policy has visitors sign in with a provider that is not in relay.toml; it lets nobody in", "target", target, "provider", d.SignIn.Provider)
		}
		next = policy.Renew(before, d, r.policies.database)
	} else if before != nil {
		before.End()
	}
	r.policies.mu.Lock()
	if next == nil {
		delete(r.policies.byTarget, target)
	} else {
		r.policies.byTarget[target] = next
	}
	r.policies.mu.Unlock()
	r.task(func() { r.edge.Recheck(target) })
}

// geoSettings tells of the geo database in force.
func (p *policies) geoSettings(file string) console.GeoSettings {
	s := console.GeoSettings{File: file}
	if db := p.geo.Load(); db != nil {
		built := db.reader.Metadata.BuildTime().UTC()
		s.LoadedAt, s.BuildAt = &db.loaded, &built
	}
	if fault := p.geoFault.Load(); fault != nil {
		s.Error = *fault
	}
	return s
}

// watchHours ends what is open on targets that close now.
func (r *Relay) watchHours(ctx context.Context) {
	tick := time.NewTicker(hoursCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		r.recheck((*policy.Policy).Timed)
	}
}

// recheck holds what is open on the targets of some policies to them as they
// decide now.
func (r *Relay) recheck(pick func(*policy.Policy) bool) {
	r.policies.mu.RLock()
	var list []string
	for target, p := range r.policies.byTarget {
		if pick(p) {
			list = append(list, target)
		}
	}
	r.policies.mu.RUnlock()
	for _, target := range list {
		r.edge.Recheck(target)
	}
}

// watchGeo reads the geo database again when its file changes. A file that
// does not parse keeps the one before it.
func (r *Relay) watchGeo(ctx context.Context) {
	if r.cfg.Geo.Database == "" {
		return
	}
	every := r.opts.geoCheck
	if every == 0 {
		every = geoCheck
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	bad := time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		info, err := os.Stat(r.cfg.Geo.Database)
		if err != nil || info.ModTime().Equal(r.policies.geo.Load().changed) || info.ModTime().Equal(bad) {
			continue
		}
		db, err := openGeo(r.cfg.Geo.Database)
		if err != nil {
			bad = info.ModTime()
			r.log.Warn("the new geo database is not used", "error", err)
			fault := err.Error()
			r.policies.geoFault.Store(&fault)
			continue
		}
		r.policies.geo.Store(db)
		r.policies.geoFault.Store(nil)
		r.log.Info("geo database read again", "file", r.cfg.Geo.Database)
		r.recheck((*policy.Policy).Fenced)
	}
}

// geoDatabase is a database of countries and regions in MaxMind's format. It is
// read into memory: a mapped file that somebody cuts short would end the process.
type geoDatabase struct {
	reader  *maxminddb.Reader
	changed time.Time // the file's
	loaded  time.Time
}

const maxGeoSize = 1 << 30

func openGeo(path string) (*geoDatabase, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, config.FileError("geo.database", path, err)
	}
	if info.Size() > maxGeoSize {
		return nil, fmt.Errorf("geo.database: %s is larger than 1 GiB", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, config.FileError("geo.database", path, err)
	}
	reader, err := maxminddb.OpenBytes(data)
	if err != nil {
		return nil, fmt.Errorf("geo.database: %s is not a database in MMDB format: %w", path, err)
	}
	return &geoDatabase{reader, info.ModTime(), time.Now().UTC()}, nil
}

// Country returns where an address is, as far as the database says.
func (g *geoDatabase) Country(a netip.Addr) (country, region string, known bool) {
	var record struct {
		Country struct {
			Code string `maxminddb:"iso_code"`
		} `maxminddb:"country"`
		Regions []struct {
			Code string `maxminddb:"iso_code"`
		} `maxminddb:"subdivisions"`
	}
	if err := g.reader.Lookup(a).Decode(&record); err != nil || record.Country.Code == "" {
		return "", "", false
	}
	if len(record.Regions) > 0 {
		region = record.Regions[0].Code
	}
	return record.Country.Code, region, true
}
