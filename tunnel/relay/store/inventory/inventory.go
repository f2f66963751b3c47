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
	gather  = time.Second      // changes within this time are written together
	again   = time.Minute      // after the file could not be written
	most    = 3                // how often a table whose watch lags is checked again
	askTime = 10 * time.Second // to ask for a table's last revision
)

// Table is what the inventory needs of a table.
type Table interface {
	// Revisions returns the revisions of all values, by key.
	Revisions() map[string]uint64
	// Known returns the newest known revision of a key, and whether it is of a value rather
	// than a removal. If nothing is known, rev is 0.
	Known(key string) (rev uint64, exists bool)
	// Taken returns a revision up to which Revisions is complete.
	Taken() uint64
	// Last returns the newest revision that was ever written.
	Last(ctx context.Context) (uint64, error)
	// OnWrite calls f after every change from now on. f must not block.
	OnWrite(f func())
}

// list is what the file contains about a table: every value with a revision up to Last, and
// perhaps newer ones.
type list struct {
	Last uint64            `json:"last"`
	Keys map[string]uint64 `json:"keys"` // revisions
}

type document struct {
	Version int             `json:"version"`
	Tables  map[string]list `json:"tables"`
}

// listed is a table with additional facts about it.
type listed struct {
	table   Table
	passing func(key string) bool
	last    uint64 // of the table when it was checked
}

// Inventory is the list of a store. It is not safe for concurrent use.
type Inventory struct {
	path    string
	log     *slog.Logger
	tables  map[string]*listed
	wrote   chan struct{} // capacity 1
	content []byte        // of the file, as it was last written here
}

// New returns an inventory in a file, without any tables.
func New(path string, log *slog.Logger) *Inventory {
	return &Inventory{path: path, log: log, tables: make(map[string]*listed), wrote: make(chan struct{}, 1)}
}

// Add adds a table under a name. Keys for which passing returns true may come and go without
// being listed; passing may be nil.
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

// Check compares the tables, which must just have been read, with the file. Without a file
// there are no faults.
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

// compare returns the differences between the list and the table.
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
	// The file may be slightly out of date, for example after a kill, and a removal at that
	// moment leaves no trace after an hour. Each such removal took a revision.
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

// unlisted returns how many revisions the list does not account for.
func (l *listed) unlisted(was list) int {
	n := int(l.last - min(was.Last, l.last))
	for _, rev := range was.Keys {
		if rev > was.Last && rev <= l.last {
			n--
		}
	}
	return n
}

// read returns the contents of the file, or nothing if it cannot be read.
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

// Keep writes the list now, shortly after each change, and once more when ctx ends. Check must
// have been called before.
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
	_ = i.write() // if this fails, the list is slightly out of date, which is allowed
}

// behind reports whether a table's watch has not yet brought everything that was written.
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

// write writes the list if it has changed.
func (i *Inventory) write() error {
	d := document{Version: version, Tables: make(map[string]list)}
	for name, l := range i.tables {
		last := max(l.last, l.table.Taken()) // read before the revisions
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
