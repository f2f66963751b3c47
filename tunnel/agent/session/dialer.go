package session

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"time"

	"adit/tunnel/agent/control"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// Dialer makes sessions. Set its fields before calling its methods; Dial and Logger are required.
type Dialer struct {
	// Dial opens a session.
	Dial func(ctx context.Context, relay link.DialConfig) (link.Session, error)
	// Detour lets a session over UDP continue over TCP while UDP does not get through.
	Detour bool
	// Streams is how many streams a session may have open in each direction, and Memory how many of
	// its bytes may wait. If zero, the defaults of package link apply.
	Streams int
	Memory  int64
	// Instance and Version are reported to the relay.
	Instance, Version string
	Logger            *slog.Logger
}

// Joining is what an agent connects with, regardless of the address.
type Joining struct {
	Token    wire.Token
	ClientID string // that the token must be of; empty: any
	Over     link.Transport
	Beside   string // the node that the session must not be with; empty: any will do
	Trial    bool   // it serves no tunnel: see wire.Hello
}

// Connect makes a session at addr and sends Hello.
func (d *Dialer) Connect(ctx context.Context, addr string, j Joining) (*Session, error) {
	session, err := d.Dial(ctx, link.DialConfig{
		Relay: addr, Fingerprint: j.Token.Fingerprint, Transport: j.Over,
		Detour: d.Detour && !j.Trial, MaxStreams: d.Streams, Memory: d.Memory, Logger: d.Logger,
	})
	if err != nil {
		return nil, err
	}
	client := control.New(session)
	hostname, _ := os.Hostname()
	welcome, err := client.Hello(ctx, wire.Hello{
		Protocol: wire.Protocol, Secret: j.Token.Secret[:], ClientID: j.ClientID, Instance: d.Instance,
		Version: d.Version, OS: runtime.GOOS, Arch: runtime.GOARCH, Hostname: hostname, Beside: j.Beside, Trial: j.Trial,
	})
	if err != nil {
		client.Close()
		_ = session.Close("no welcome")
		// The session's error says more than that of the request that it broke.
		if ended := session.Err(); ended != nil && !control.Answered(err) && ctx.Err() == nil {
			var closed *link.CloseError
			if errors.As(ended, &closed) {
				err = ended
			}
		}
		return nil, err
	}
	return &Session{
		Link: session, Control: client, Welcome: welcome, Addr: addr, Since: time.Now(),
		log: d.Logger, retired: make(chan struct{}), doubt: make(chan struct{}, 1),
	}, nil
}
