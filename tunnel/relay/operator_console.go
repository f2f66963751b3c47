package relay

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"adit/internal/atomicfile"
	"adit/tunnel/relay/console"
)

// SetupCodeFile is the name in the data folder of the code for the first
// administrator, until there is one.
const SetupCodeFile = "setup_code"

// openSetup makes or reads the set-up code, or removes its file if the console
// has an account.
func (r *Relay) openSetup() error {
	path := filepath.Join(r.cfg.DataDir, SetupCodeFile)
	if _, _, done := r.store.Operators.Get("setup"); done {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the set-up code: %w", err)
		}
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the set-up code: %w", err)
	}
	if r.setup = strings.TrimSpace(string(data)); len(r.setup) >= 16 {
		return nil
	}
	text := rand.Text()
	r.setup = text[:4] + "-" + text[4:8] + "-" + text[8:12] + "-" + text[12:16]
	if err := atomicfile.Write(path, []byte(r.setup+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the set-up code: %w", err)
	}
	return nil
}

// SetupCode makes the console's first administrator; "" if there is one.
func (r *Relay) SetupCode() string { return r.setup }

// setupDone forgets the set-up code.
func (r *Relay) setupDone() {
	if err := os.Remove(filepath.Join(r.cfg.DataDir, SetupCodeFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.log.Warn("the set-up code's file is left behind; it is worth nothing any more", "error", err)
	}
}

// Counters are what only rises.
func (o operator) Counters() console.Counters {
	var c console.Counters
	for _, n := range o.edge.Visitors() {
		c.Open += n
	}
	f := o.edge.Figures()
	c.Bytes = console.Bytes{In: f.BytesIn, Out: f.BytesOut}
	for i := range o.counts.visits {
		for j := range o.counts.visits[i] {
			n := o.counts.visits[i][j].Load()
			c.Visits += n
			switch countedOutcomes[j] {
			case "refused":
				c.Refused += n
			case "5xx":
				c.Failed += n
			}
		}
	}
	return c
}
