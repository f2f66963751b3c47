// Package inventory lists the contents of a store's tables in a file beside the store. With
// the list, values that were lost to a damaged disk or to a copy of an older folder can be
// told from values that never existed, which the store's own files do not show. Its callers
// supply the tables.
package inventory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"adit/internal/atomicfile"
	"adit/internal/natural"
)

// File is the inventory's name in the data folder.
const File = "inventory.json"

const (
	version = 1
	gather  = time.Second      // what is written within it is listed together
	again   = time.Minute      // after the file could not be written
	most    = 3                // times that a table whose watch lags is looked at again
	askTime = 10 * time.Second // for a table's last revision
)

// Table is a table as it is listed.
type Table interface {
	// Revisions are those of all values, by key.
	Revisions() map[string]uint64
	// Known is the newest revision of a key, and whether it is a value's and not a
	// removal's; 0: nothing is known of it.
	Known(key string) (rev uint64, exists bool)
	// Taken is a revision up to which nothing is missing in Revisions.
	Taken() uint64
	// Last is the newest revision that was ever written.
	Last(ctx context.Context) (uint64, error)
	// OnWrite calls f after every change from now on. f must not wait.
	OnWrite(f func())
}

// list is what the file has of a table: every value with a revision up to Last, and
// perhaps newer ones.
type list struct {
	Last uint64            `json:"last"`
	Keys map[string]uint64 `json:"keys"` // revisions
}

type document struct {
	Version int             `json:"version"`
	Tables  map[string]list `json:"tables"`
}

// listed is a table, and what is known of it beside what it says.
type listed struct {
	table   Table
	passing func(key string) bool
	last    uint64 // of the table when it was checked
}

// Inventory is the list of a store. Its methods are called by one goroutine at a time.
type Inventory struct {
	path    string
	log     *slog.Logger
	tables  map[string]*listed
	wrote   chan struct{} // room for one
	content []byte        // of the file, as far as it was written here
}

// New is the inventory in a file, without any table yet.
func New(path string, log *slog.Logger) *Inventory {
	return &Inventory{path: path, log: log, tables: make(map[string]*listed), wrote: make(chan struct{}, 1)}
}

// Add lists a table by a name, but for keys that are passing, which may come and go
// unnoticed; passing may be nil.
func (i *Inventory) Add(name string, t Table, passing func(key string) bool) {
	if passing == nil {
		passing = func(string) bool { return false }
	}
	i.tables[name] = &listed{table: t, passing: passing}
	t.OnWrite(func() {
		select {
		case i.wrote <- struct{}{}:
		default:
		}
	})
}

// Check compares the tables, which were just read, with the file. Without a file there
// is no fault.
func (i *Inventory) Check(ctx context.Context) ([]Fault, error) {
	before := i.read()
	var faults []Fault
	for _, name := range slices.SortedFunc(maps.Keys(i.tables), natural.Compare) {
		l := i.tables[name]
		last, err := l.table.Last(ctx)
		if err != nil {
			return nil, fmt.Errorf("ask for the newest revision of %s: %w", name, err)
		}
		l.last = last
		if was, ok := before[name]; ok {
			faults = append(faults, l.compare(name, was)...)
		}
	}
	return faults, nil
}

// compare returns what a table lacks of what it was.
func (l *listed) compare(name string, was list) []Fault {
	var faults, gone []Fault
	for key, rev := range was.Keys {
		known, _ := l.table.Known(key)
		switch {
		case known >= rev:
		case known == 0:
			gone = append(gone, Fault{name, key, Gone})
		default:
			faults = append(faults, Fault{name, key, Older})
		}
	}
	// The file may be a moment behind, as after a kill, and of what was removed in that
	// moment nothing is left after an hour. Each removal took a revision.
	if len(gone) > l.unlisted(was) {
		faults = append(faults, gone...)
	}
	for key, rev := range l.table.Revisions() {
		if _, ok := was.Keys[key]; !ok && rev <= was.Last && !l.passing(key) {
			faults = append(faults, Fault{name, key, Back})
		}
	}
	slices.SortFunc(faults, func(a, b Fault) int { return natural.Compare(a.Key, b.Key) })
	return faults
}

// unlisted is how many revisions there were that the list does not account for.
func (l *listed) unlisted(was list) int {
	n := int(l.last - min(was.Last, l.last))
	for _, rev := range was.Keys {
		if rev > was.Last && rev <= l.last {
			n--
		}
	}
	return n
}

// read returns what the file has, nothing if there is none that can be read.
func (i *Inventory) read() map[string]list {
	data, err := os.ReadFile(i.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var d document
	if err == nil {
		err = json.Unmarshal(data, &d)
	}
	if err == nil && d.Version != version {
		err = fmt.Errorf("it is of version %d, and this program knows %d", d.Version, version)
	}
	if err != nil {
		i.log.Warn("the list of what the store had cannot be read; whether something is lost is not known", "file", i.path, "error", err)
		return nil
	}
	i.content = data
	return d.Tables
}

// Keep writes the list now, and a moment after each change until ctx ends, and then
// once more. Check was called before.
func (i *Inventory) Keep(ctx context.Context) {
	failed := false
	for ctx.Err() == nil {
		err := i.write()
		if err != nil && !failed {
			i.log.Warn("the list of what the store has is not written; it is tried again", "error", err)
		}
		failed = err != nil
		var late <-chan time.Time
		if failed {
			late = time.After(again)
		}
		select {
		case <-i.wrote:
		case <-late:
		case <-ctx.Done():
		}
		for range most {
			select {
			case <-time.After(gather):
			case <-ctx.Done():
			}
			if ctx.Err() != nil || !i.behind(ctx) {
				break
			}
		}
	}
	_ = i.write() // else the list stays a moment behind, which is no fault
}

// behind reports whether the watch of a table has not brought all that was written.
func (i *Inventory) behind(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	for _, l := range i.tables {
		if last, err := l.table.Last(ctx); err == nil && last > max(l.last, l.table.Taken()) {
			return true
		}
	}
	return false
}

// write writes the list, if it is another than before.
func (i *Inventory) write() error {
	d := document{Version: version, Tables: make(map[string]list)}
	for name, l := range i.tables {
		last := max(l.last, l.table.Taken()) // before what is there
		keys := l.table.Revisions()
		maps.DeleteFunc(keys, func(key string, _ uint64) bool { return l.passing(key) })
		d.Tables[name] = list{last, keys}
	}
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if bytes.Equal(data, i.content) {
		return nil
	}
	if err := atomicfile.Write(i.path, data, 0o600); err != nil {
		return err
	}
	i.content = data
	return nil
}
