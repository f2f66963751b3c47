package udpflow

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"sync"
)

const (
	// MaxPayload is the size of the largest packet that a Framed carries, in bytes.
	MaxPayload = 65535
	// waiting is how many packets wait to be written; more are dropped.
	waiting = 256
)

// Framed is a Way over a connection that preserves what is written: each packet is preceded by its
// length (uint16, big-endian).
type Framed struct {
	conn   io.ReadWriteCloser
	answer func(payloads [][]byte)
	out    chan []byte // packets with their lengths
}

// NewFramed returns a Framed over conn and takes ownership of it. answer receives what arrives.
func NewFramed(conn io.ReadWriteCloser, answer func(payloads [][]byte)) *Framed {
	return &Framed{conn: conn, answer: answer, out: make(chan []byte, waiting)}
}

// Send implements Way.
func (f *Framed) Send(payloads [][]byte) {
	for _, payload := range payloads {
		if len(payload) > MaxPayload {
			continue
		}
		b := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(payload)), uint16(len(payload)))
		select {
		case f.out <- append(b, payload...):
		default: // the other side does not read
		}
	}
}

// Run implements Way.
func (f *Framed) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	defer context.AfterFunc(ctx, func() { f.conn.Close() })()
	wg.Go(func() {
		defer cancel()
		f.write(ctx)
	})
	f.read()
	f.conn.Close()
}

func (f *Framed) write(ctx context.Context) {
	w := bufio.NewWriterSize(f.conn, 64<<10)
	for {
		select {
		case <-ctx.Done():
			return
		case b := <-f.out:
			if _, err := w.Write(b); err != nil {
				return
			}
		}
		if len(f.out) == 0 && w.Flush() != nil {
			return
		}
	}
}

func (f *Framed) read() {
	r := bufio.NewReaderSize(f.conn, 64<<10)
	payload := make([]byte, MaxPayload)
	for {
		var size [2]byte
		if _, err := io.ReadFull(r, size[:]); err != nil {
			return
		}
		n := int(binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(r, payload[:n]); err != nil {
			return
		}
		f.answer([][]byte{payload[:n]})
	}
}
