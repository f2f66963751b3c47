// Package farewell keeps the last word to the peer of each UDP session in a file. A process that is
// killed sends nothing, and over UDP nothing is sent on its behalf; the process started after it
// can send the words that it finds in the file. They are sealed with the session's keys when the
// session begins, so no key is ever written.
package farewell

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"sync"
)

// File is the file's name in a relay's data folder.
const File = "farewells"

// maxSlots is how many sessions a file has room for; any more have no farewell.
const maxSlots = 1 << 16

// ID identifies the session of a record.
type ID [8]byte

// Word is the last word to a peer.
type Word struct {
	// To is where the peer was last heard from. If it is not valid, the word is sent only once the
	// peer is heard from again.
	To netip.AddrPort
	// From is the local address that the peer knows; not valid if unknown.
	From netip.Addr
	// Record is the datagram that ends the session: 1 to MaxRecord bytes.
	Record []byte
}

// Book is a file of words. Its methods may be called from any goroutine and, except for Close,
// never wait for the disk. A word that could not be written is simply missing after a kill.
type Book struct {
	file *os.File
	log  *slog.Logger

	mu     sync.Mutex
	left   map[ID]Word
	slots  map[ID]int64
	free   []int64 // slots below next that nobody has
	next   int64
	dirty  map[int64][]byte // what slots are to have
	closed bool
	wake   chan struct{} // room for one
	ended  chan struct{}
}

// Open opens the file, creating it if needed. A file must not be open twice at the same time.
func Open(path string, log *slog.Logger) (*Book, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the farewells: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxSlots*slotSize))
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("read the farewells: %w", err)
	}
	b := &Book{
		file: file, log: log, left: make(map[ID]Word), slots: make(map[ID]int64),
		dirty: make(map[int64][]byte), wake: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	for ; len(data) >= slotSize; data = data[slotSize:] {
		id, word, ok := decode([slotSize]byte(data))
		if _, twice := b.slots[id]; !ok || twice {
			b.free = append(b.free, b.next)
		} else {
			b.left[id], b.slots[id] = word, b.next
		}
		b.next++
	}
	go b.write()
	return b, nil
}

// Left returns the words left by the previous process, by session, to the first caller. Each stays
// in the file until it is dropped.
func (b *Book) Left() map[ID]Word {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.left
	b.left = nil
	return left
}

// Keep stores the word for a session's peer.
func (b *Book) Keep(id ID, w Word) {
	if len(w.Record) == 0 || len(w.Record) > MaxRecord {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	slot, ok := b.slots[id]
	switch last := len(b.free) - 1; {
	case b.closed, !ok && last < 0 && b.next == maxSlots:
		return
	case ok:
	case last >= 0:
		slot, b.free = b.free[last], b.free[:last]
	default:
		slot = b.next
		b.next++
	}
	b.slots[id] = slot
	b.put(slot, encode(id, w))
}

// Drop removes the word for a session's peer, if there is one.
func (b *Book) Drop(id ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	slot, ok := b.slots[id]
	if !ok || b.closed {
		return
	}
	delete(b.slots, id)
	b.free = append(b.free, slot)
	b.put(slot, [slotSize]byte{})
}

// put schedules a slot to be written. The caller holds mu.
func (b *Book) put(slot int64, content [slotSize]byte) {
	b.dirty[slot] = content[:]
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// write writes changed slots until Close.
func (b *Book) write() {
	defer close(b.ended)
	told := false
	for range b.wake {
		b.mu.Lock()
		dirty := b.dirty
		b.dirty = make(map[int64][]byte)
		b.mu.Unlock()
		var failed error
		for slot, content := range dirty {
			if _, err := b.file.WriteAt(content, slot*slotSize); err != nil {
				failed = err
			}
		}
		if failed != nil && !told {
			b.log.Warn("the farewells cannot be written: after a kill some agents notice it later", "error", failed)
		}
		told = failed != nil
	}
}

// Close writes what is pending. Words that have not been dropped by then are left to the next
// process.
func (b *Book) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	empty := len(b.slots) == 0
	b.mu.Unlock()
	close(b.wake)
	<-b.ended
	var err error
	if empty {
		err = b.file.Truncate(0)
	}
	return errors.Join(err, b.file.Close())
}
