package record

import (
	"crypto/rand"

	"github.com/pion/logging"
)

// newCID returns a Connection ID that nobody can guess.
func newCID() []byte {
	cid := make([]byte, cidSize)
	_, _ = rand.Read(cid) // never fails
	return cid
}

// quiet is pion's logger: whatever matters about a handshake is in its error.
type quiet struct{}

func (quiet) NewLogger(string) logging.LeveledLogger { return quiet{} }
func (quiet) Trace(string)                           {}
func (quiet) Tracef(string, ...any)                  {}
func (quiet) Debug(string)                           {}
func (quiet) Debugf(string, ...any)                  {}
func (quiet) Info(string)                            {}
func (quiet) Infof(string, ...any)                   {}
func (quiet) Warn(string)                            {}
func (quiet) Warnf(string, ...any)                   {}
func (quiet) Error(string)                           {}
func (quiet) Errorf(string, ...any)                  {}
