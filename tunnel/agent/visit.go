package agent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"adit/tunnel/agent/refusal"
	"adit/tunnel/agent/splice"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// maxVisitHead bounds the head of the relay's answer to a visit.
const maxVisitHead = 4 << 10

// Visit leads a connection to another client's private tunnel, which is called
// CLIENT/NAME, until both directions are over or ctx ends. Once the relay has let it
// in, take gives the connection, and closing that is left to Visit; an error before
// that is an *refusal.Error that says why not, and take is not called.
func (a *Agent) Visit(ctx context.Context, tunnel string, take func() (splice.HalfCloser, error)) error {
	return a.visitWith(ctx, tunnel, take, func(int, int) {})
}

// visitWith is Visit with moved told how many bytes go to the tunnel and come from it.
func (a *Agent) visitWith(ctx context.Context, tunnel string, take func() (splice.HalfCloser, error), moved func(to, from int)) error {
	stream, err := a.dialPrivate(ctx, tunnel)
	if err != nil {
		return err
	}
	defer stream.Close()
	local, err := take()
	if err != nil {
		stream.Reset()
		return err
	}
	defer local.Close()
	abort := sync.OnceFunc(func() {
		stream.Reset()
		if tcp, ok := local.(interface{ SetLinger(sec int) error }); ok {
			_ = tcp.SetLinger(0) // it is cut, not ended
		}
		local.Close()
	})
	defer context.AfterFunc(ctx, abort)()
	var wg sync.WaitGroup
	wg.Go(func() {
		err := splice.Half(stream, local, func(b []byte) { moved(len(b), 0) }, nil)
		if err != nil || stream.CloseWrite() != nil {
			abort()
		}
	})
	err = splice.Half(local, stream, func(b []byte) { moved(0, len(b)) }, nil)
	if err != nil || local.CloseWrite() != nil {
		abort()
	}
	wg.Wait()
	return nil
}

// MayVisit asks the relay whether a private tunnel runs and lets this agent in; the
// tunnel's local service is not asked. Its error is an *Error.
func (a *Agent) MayVisit(ctx context.Context, tunnel string) error {
	ctx, cancel := context.WithTimeout(ctx, relayWait)
	defer cancel()
	l, path, err := a.wayToPrivate(ctx, tunnel)
	if err != nil {
		return err
	}
	if err := l.ctl.call(ctx, http.MethodGet, path, nil, nil); err != nil {
		return relayError(err, "")
	}
	return nil
}

// Invitation is a private tunnel that runs and lets this agent in.
type Invitation struct {
	Tunnel string `json:"tunnel"` // CLIENT/NAME
}

// Invitations asks the relay which private tunnels of others there are for this agent
// to visit, sorted and wire.MaxInvitations at most. Its error is an *Error.
func (a *Agent) Invitations(ctx context.Context) ([]Invitation, error) {
	ctx, cancel := context.WithTimeout(ctx, relayWait)
	defer cancel()
	l, err := a.sessionWith(ctx, wire.FeatureInvitations, &refusal.Error{
		Code:    refusal.CodeRelayRejected,
		Message: "the relay is of a version that does not tell which private tunnels may be visited; ask its operator to update it",
	})
	if err != nil {
		return nil, err
	}
	var answer wire.Invitations
	if err := l.ctl.call(ctx, http.MethodGet, wire.PathInvitations, nil, &answer); err != nil {
		return nil, relayError(err, "")
	}
	list := []Invitation{}
	for _, tunnel := range answer.Tunnels {
		if client, name, err := wire.ParsePrivate(tunnel); err == nil && len(list) < wire.MaxInvitations {
			list = append(list, Invitation{client + "/" + name})
		}
	}
	return list, nil
}

// wayToPrivate returns the session by which a private tunnel is visited, and what the
// relay is asked for. Its error is an *Error.
func (a *Agent) wayToPrivate(ctx context.Context, tunnel string) (*live, string, error) {
	client, name, err := wire.ParsePrivate(tunnel)
	if err != nil {
		return nil, "", refusal.Invalid("tunnel", "%v", err)
	}
	l, err := a.sessionWith(ctx, wire.FeaturePrivate, &refusal.Error{
		Code:    refusal.CodeRelayRejected,
		Message: "the relay is of a version that knows no private tunnels; ask its operator to update it",
	})
	if err != nil {
		return nil, "", err
	}
	return l, wire.PathVisit + client + "/" + name, nil
}

// sessionWith returns a session with a relay that has a feature; without is the error
// where it has not. Its error is an *Error.
func (a *Agent) sessionWith(ctx context.Context, feature string, without *refusal.Error) (*live, error) {
	l, no := a.session(ctx, nil)
	switch {
	case no != nil:
		return nil, no
	case l == nil:
		return nil, &refusal.Error{Code: refusal.CodeRelayUnreachable, Message: "adit is paused; resume it first"}
	case !slices.Contains(l.welcome.Features, feature):
		return nil, without
	}
	return l, nil
}

// dialPrivate has the relay lead a stream to a private tunnel. Its error is an *Error.
func (a *Agent) dialPrivate(ctx context.Context, tunnel string) (link.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, relayWait)
	defer cancel()
	l, path, err := a.wayToPrivate(ctx, tunnel)
	if err != nil {
		return nil, err
	}
	stream, err := l.session.OpenStream(ctx)
	if err != nil {
		return nil, relayError(err, "")
	}
	// Whatever waits below ends with ctx.
	stop := context.AfterFunc(ctx, stream.Reset)
	err = askVisit(stream, path)
	if !stop() { // what it broke says less
		err = ctx.Err()
	}
	if err != nil {
		stream.Reset()
		stream.Close()
		return nil, relayError(err, "")
	}
	return stream, nil
}

// askVisit asks for a visit on a new stream, and reads not one byte of the tunnel's.
func askVisit(stream link.Stream, path string) error {
	req, err := http.NewRequest(http.MethodPost, "http://relay"+path, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", wire.UpgradeVisit)
	var text bytes.Buffer
	if err := req.Write(&text); err != nil {
		return err
	}
	if _, err := stream.Write(text.Bytes()); err != nil {
		return fmt.Errorf("ask the relay for a visit: %w", err)
	}
	head, err := readHead(stream)
	if err != nil {
		return fmt.Errorf("read the relay's answer to a visit: %w", err)
	}
	rest := io.Reader(bytes.NewReader(head))
	if !strings.HasPrefix(string(head), "HTTP/1.1 101 ") {
		rest = io.MultiReader(rest, stream)
	}
	res, err := http.ReadResponse(bufio.NewReader(rest), req)
	if err != nil {
		return fmt.Errorf("the relay's answer to a visit does not parse: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusSwitchingProtocols {
		if !strings.EqualFold(res.Header.Get("Upgrade"), wire.UpgradeVisit) {
			return errors.New("the relay's answer to a visit is of another protocol")
		}
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the relay's answer to a visit: %w", err)
	}
	return problem(res.StatusCode, body)
}

// readHead reads up to the empty line that ends a message's head, and no further.
func readHead(r io.Reader) ([]byte, error) {
	head := make([]byte, 0, 128)
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
		if len(head) == maxVisitHead {
			return nil, fmt.Errorf("its head is larger than %d bytes", maxVisitHead)
		}
		var one [1]byte
		if _, err := io.ReadFull(r, one[:]); err != nil {
			return nil, err
		}
		head = append(head, one[0])
	}
	return head, nil
}
