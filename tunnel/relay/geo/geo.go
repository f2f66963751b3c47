// Package geo looks up the country and region of an address in a database whose file may
// be replaced at any time.
package geo

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"adit/tunnel/relay/sentence"

	"github.com/oschwald/maxminddb-golang/v2"
)

const checkEvery = 10 * time.Second

// File is a database that is read from a file. The zero File has no database and knows no
// places.
type File struct {
	Path  string        // empty: no database
	Every time.Duration // how often Watch checks the file; if zero, 10 seconds
	Log   *slog.Logger

	db    atomic.Pointer[Database]
	fault atomic.Pointer[string] // why a new database is not used; nil: there is no fault
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

// Database returns the current database, or nil if there is none.
func (f *File) Database() *Database { return f.db.Load() }

// Place returns where an address is, such as DE or US-CA, or "" if that is not known.
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

// Fault returns why a new database is not used and the previous one still is, or "" if
// all is well.
func (f *File) Fault() string {
	if fault := f.fault.Load(); fault != nil {
		return *fault
	}
	return ""
}

// Watch reads the database again when its file changes, and then calls changed, until ctx
// ends. If the file cannot be parsed, the previous database stays in use.
func (f *File) Watch(ctx context.Context, changed func()) {
	if f.Path == "" {
		return
	}
	tick := time.NewTicker(cmp.Or(f.Every, checkEvery))
	defer tick.Stop()
	var bad os.FileInfo // the last file that was not a database; nil: none
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		info, err := os.Stat(f.Path)
		// After a bad file, comparing with the file in use proves nothing: a new file may
		// have been given the same inode number.
		if err != nil || same(info, bad) || f.fault.Load() == nil && same(info, f.db.Load().file) {
			continue
		}
		db, read, err := open(f.Path)
		if err != nil {
			bad = read
			if fault := err.Error(); fault != f.Fault() {
				f.Log.Warn("the new geo database is not used", "error", err)
				f.fault.Store(&fault)
			}
			continue
		}
		f.db.Store(db)
		bad = nil
		f.fault.Store(nil)
		f.Log.Info("geo database read again", "file", f.Path)
		changed()
	}
}

// same reports whether a file has neither been written to nor replaced. The modification
// time alone is not enough, as tools copy it.
func same(a, b os.FileInfo) bool {
	return a != nil && b != nil && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && os.SameFile(a, b)
}

// Database is a database of countries and regions in MaxMind's format. It is read into
// memory, since a mapped file that somebody truncates would crash the process.
type Database struct {
	reader *maxminddb.Reader
	file   os.FileInfo
	loaded time.Time
}

const maxSize = 1 << 30

// Open reads a database.
func Open(path string) (*Database, error) {
	db, _, err := open(path)
	return db, err
}

// open also returns which file was read, even if it is not a database. That is nil if no
// file could be read.
func open(path string) (*Database, os.FileInfo, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, sentence.File("geo.database", path, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, sentence.File("geo.database", path, err)
	}
	if info.Size() > maxSize {
		return nil, info, fmt.Errorf("geo.database: %s is larger than 1 GiB", path)
	}
	data := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	if _, err := data.ReadFrom(io.LimitReader(file, maxSize)); err != nil {
		return nil, nil, sentence.File("geo.database", path, err)
	}
	reader, err := maxminddb.OpenBytes(data.Bytes())
	if err != nil {
		return nil, info, fmt.Errorf("geo.database: %s is not a database in MMDB format: %w", path, err)
	}
	return &Database{reader, info, time.Now().UTC()}, info, nil
}

// Country returns where an address is, according to the database.
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

// Loaded returns when the database was read.
func (g *Database) Loaded() time.Time { return g.loaded }

// Built returns when the database was made.
func (g *Database) Built() time.Time { return g.reader.Metadata.BuildTime().UTC() }
