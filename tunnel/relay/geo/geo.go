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
	var bad os.FileInfo // whose content is none; nil: none is known
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		info, err := os.Stat(f.Path)
		// Behind a wrong file no other is known by its looks: what seems to be the one
		// in force may have got its number.
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

// same reports whether nothing has been written to a file, nor another been put in
// its place: the time of change alone may be the same, as tools copy it.
func same(a, b os.FileInfo) bool {
	return a != nil && b != nil && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && os.SameFile(a, b)
}

// Database is a database of countries and regions in MaxMind's format. It is
// read into memory: a mapped file that somebody cuts short would end the process.
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

// open also returns which file was read, of one that is no database too; nil: none
// could be.
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
