package origin

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/lend"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// Conn is a stream to an origin. The preface is sent with the first write, and the agent's
// answer is removed from the first bytes read, so a new connection costs no extra round trip.
type Conn struct {
	link.Stream

	write   sync.Mutex
	preface []byte

	read     sync.Mutex
	answered bool
	ended    atomic.Bool   // one direction has ended
	done     chan struct{} // closed when the answer has been read
	refusal  error         // set before done is closed
}

func (c *Conn) Write(b []byte) (int, error) {
	c.write.Lock()
	defer c.write.Unlock()
	if c.preface == nil {
		n, err := c.Stream.Write(b)
		return n, c.explain(err)
	}
	skip := len(c.preface)
	n, err := c.Stream.Write(append(c.preface, b...))
	c.preface = nil
	return max(n-skip, 0), c.explain(err)
}

// explain looks for the reason why a write failed. An agent that cannot reach its origin says
// so and closes the stream, and that may break a write before the reason has been read.
func (c *Conn) explain(err error) error {
	if err == nil {
		return nil
	}
	const patience = 2 * time.Second
	if c.read.TryLock() { // nobody is reading
		defer c.read.Unlock()
		c.SetReadDeadline(time.Now().Add(patience))
		defer c.SetReadDeadline(time.Time{})
		var down *wire.OriginError
		if errors.As(c.answer(), &down) {
			return down
		}
		return err
	}
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case <-c.done:
		if c.refusal != nil {
			return c.refusal
		}
	case <-wait.C:
	}
	return err
}

func (c *Conn) Read(b []byte) (int, error) { return c.ReadDirect(b, nil) }

// ReadDirect implements link.DirectReader.
func (c *Conn) ReadDirect(b []byte, take func([]byte) int) (int, error) {
	return c.receive(func() (int, error) {
		if d, ok := c.Stream.(link.DirectReader); ok && take != nil {
			return d.ReadDirect(b, take)
		}
		return c.Stream.Read(b)
	})
}

// ReadLent implements link.LentReader.
func (c *Conn) ReadLent(l *lend.Buffer, take func([]byte) int) (int, error) {
	return c.receive(func() (int, error) {
		b, err := link.ReadDirect(c.Stream, l, take)
		return len(b), err
	})
}

// receive reads the origin's bytes, after the agent's answer.
func (c *Conn) receive(read func() (int, error)) (int, error) {
	c.read.Lock()
	defer c.read.Unlock()
	if err := c.answer(); err != nil {
		return 0, err
	}
	n, err := read()
	if errors.Is(err, io.EOF) {
		c.ended.Store(true)
	}
	return n, err
}

// CloseWrite closes the direction towards the origin.
func (c *Conn) CloseWrite() error {
	c.ended.Store(true)
	return c.Stream.CloseWrite()
}

// Close closes the stream. It resets the stream if either direction has not ended, so that
// neither the agent nor the origin waits for a visitor who has gone.
func (c *Conn) Close() error {
	if !c.ended.Load() {
		c.Stream.Reset()
	}
	return c.Stream.Close()
}

// answer reads the agent's answer, unless that has been read. The caller holds c.read.
func (c *Conn) answer() error {
	if c.answered {
		return c.refusal
	}
	err := wire.ReadAnswer(c.Stream)
	c.answered = true
	var absent interface{ NoAgent() bool }
	switch {
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	case errors.As(err, &absent) && absent.NoAgent():
		err = fmt.Errorf("%w: %w", ErrNoAgent, err)
	}
	c.refusal = err
	close(c.done)
	return err
}

// Begin sends only the preface and waits for the answer.
func (c *Conn) Begin() error {
	if _, err := c.Write(nil); err != nil {
		return err
	}
	c.SetReadDeadline(time.Now().Add(answerTime))
	c.read.Lock()
	err := c.answer()
	c.read.Unlock()
	c.SetReadDeadline(time.Time{})
	return err
}

// Await waits for the answer to what was written, for as long as an agent may take, counted
// from since.
func (c *Conn) Await(since time.Time) error {
	c.SetReadDeadline(since.Add(answerTime + openTime))
	defer c.SetReadDeadline(time.Time{})
	c.read.Lock()
	defer c.read.Unlock()
	return c.answer()
}
