// Package geo says in which country and region an address is, by a database whose
// file may be replaced at any time.
package geo

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"adit/tunnel/relay/sentence"

	"github.com/oschwald/maxminddb-golang/v2"
)

const checkEvery = 10 * time.Second

// File is the database of a file. The zero File has none and knows no place.
type File struct {
	Path  string        // empty: no database
	Every time.Duration // how often Watch looks at it; if zero, 10 seconds
	Log   *slog.Logger

	db    atomic.Pointer[Database]
	fault atomic.Pointer[string] // why a new database is not used; nil: none
}

// Read reads the database for the first time.
func (f *File) Read() error {
	if f.Path == "" {
		return nil
	}
	db, err := Open(f.Path)
	if err != nil {
		return err
	}
	f.db.Store(db)
	return nil
}

// Database is the one in force; nil: there is none.
func (f *File) Database() *Database { return f.db.Load() }

// Place is where an address is, as DE or US-CA; "" if that is not known.
func (f *File) Place(a netip.Addr) string {
	db := f.db.Load()
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

// Fault is why a new database is not used, and the one before it is; "": there is
// no such reason.
func (f *File) Fault() string {
	if fault := f.fault.Load(); fault != nil {
		return *fault
	}
	return ""
}

// Watch reads the database again when its file changes, and then calls changed,
// until ctx ends. A file that does not parse keeps the one before it.
func (f *File) Watch(ctx context.Context, changed func()) {
	if f.Path == "" {
		return
	}
	tick := time.NewTicker(cmp.Or(f.Every, checkEvery))
	defer tick.Stop()
	bad := time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		info, err := os.Stat(f.Path)
		if err != nil || info.ModTime().Equal(f.db.Load().changed) || info.ModTime().Equal(bad) {
			continue
		}
		db, err := Open(f.Path)
		if err != nil {
			bad = info.ModTime()
			f.Log.Warn("the new geo database is not used", "error", err)
			fault := err.Error()
			f.fault.Store(&fault)
			continue
		}
		f.db.Store(db)
		f.fault.Store(nil)
		f.Log.Info("geo database read again", "file", f.Path)
		changed()
	}
}

// Database is a database of countries and regions in MaxMind's format. It is
// read into memory: a mapped file that somebody cuts short would end the process.
type Database struct {
	reader  *maxminddb.Reader
	changed time.Time // the file's
	loaded  time.Time
}

const maxSize = 1 << 30

// Open reads a database.
func Open(path string) (*Database, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, sentence.File("geo.database", path, err)
	}
	if info.Size() > maxSize {
		return nil, fmt.Errorf("geo.database: %s is larger than 1 GiB", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, sentence.File("geo.database", path, err)
	}
	reader, err := maxminddb.OpenBytes(data)
	if err != nil {
		return nil, fmt.Errorf("geo.database: %s is not a database in MMDB format: %w", path, err)
	}
	return &Database{reader, info.ModTime(), time.Now().UTC()}, nil
}

// Country returns where an address is, as far as the database says.
func (g *Database) Country(a netip.Addr) (country, region string, known bool) {
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

// Loaded is when the database was read.
func (g *Database) Loaded() time.Time { return g.loaded }

// Built is when the database was made.
func (g *Database) Built() time.Time { return g.reader.Metadata.BuildTime().UTC() }
