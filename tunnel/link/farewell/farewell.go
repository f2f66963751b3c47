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

// maxSlots is for how many sessions a file has room; the rest of them goes without.
const maxSlots = 1 << 16

// ID is what a session's records are known by.
type ID [8]byte

// Word is the last one to a peer.
type Word struct {
	// To is where the peer was heard last. If it is not valid, it is only told when
	// it is heard again.
	To netip.AddrPort
	// From is the own address that the peer knows; not valid if that is not known.
	From netip.Addr
	// Record is the datagram that ends the session: 1 to MaxRecord bytes.
	Record []byte
}

// Book is a file of words. Its methods may be called from any goroutine, and wait
// for no disk, but for Close. A word that could not be written is missing after a
// kill, and no more than that.
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

// Open opens the file, or makes it. It must be open once at a time.
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

// Left gives what the process before has left, by session, to the first who asks. In
// the file each is kept until it is dropped.
func (b *Book) Left() map[ID]Word {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.left
	b.left = nil
	return left
}

// Keep sets the word to a session's peer.
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

// Drop removes the word to a session's peer, if there is one.
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

// put has a slot written. The caller holds mu.
func (b *Book) put(slot int64, content [slotSize]byte) {
	b.dirty[slot] = content[:]
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// write writes what changes, until Close.
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

// Close writes what is to be written. What was not dropped by then is left to the
// next process.
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
