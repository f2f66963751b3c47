package control

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// maxVisitHead limits the head of the relay's response to a visit.
const maxVisitHead = 4 << 10

// MayVisit asks whether another client's private tunnel is running and admits this client, and
// returns its type. The tunnel's local service is not contacted.
func (c *Client) MayVisit(ctx context.Context, client, name string) (kind string, err error) {
	header, err := c.callWith(ctx, nil, http.MethodGet, pathVisit(client, name), nil, nil)
	if err != nil {
		return "", err
	}
	if header.Get(wire.HeaderType) == wire.TypeUDP {
		return wire.TypeUDP, nil
	}
	return wire.TypeTCP, nil
}

func pathVisit(client, name string) string { return wire.PathVisit + client + "/" + name }

// Invitation is a private tunnel of another client that this one may visit.
type Invitation struct {
	Tunnel string // CLIENT/NAME
	Type   string // wire.TypeTCP or wire.TypeUDP
}

// Invitations asks which private tunnels of other clients this one may visit.
func (c *Client) Invitations(ctx context.Context) ([]Invitation, error) {
	var answer wire.Invitations
	if err := c.call(ctx, http.MethodGet, wire.PathInvitations, nil, &answer); err != nil {
		return nil, err
	}
	var list []Invitation
	for _, tunnel := range answer.Tunnels {
		client, name, err := wire.ParsePrivate(tunnel)
		if err != nil || len(list) == wire.MaxInvitations {
			continue
		}
		kind := wire.TypeTCP
		if slices.Contains(answer.UDP, tunnel) {
			kind = wire.TypeUDP
		}
		list = append(list, Invitation{client + "/" + name, kind})
	}
	return list, nil
}

// Visit makes the relay connect a new stream to another client's private tunnel of type tcp.
func (c *Client) Visit(ctx context.Context, client, name string) (link.Stream, error) {
	stream, _, err := c.visit(ctx, client, name, wire.UpgradeVisit)
	return stream, err
}

// VisitUDP makes the relay connect a new flow to another client's private tunnel of type udp. It
// returns the flow's number; the flow lasts as long as the stream.
func (c *Client) VisitUDP(ctx context.Context, client, name string) (stream link.Stream, number uint32, err error) {
	stream, header, err := c.visit(ctx, client, name, wire.UpgradeVisitUDP)
	if err != nil {
		return nil, 0, err
	}
	n, err := strconv.ParseUint(header.Get(wire.HeaderFlow), 10, 32)
	if err != nil {
		stream.Reset()
		stream.Close()
		return nil, 0, fmt.Errorf("the relay's answer to a visit has no number of a flow: %w", err)
	}
	return stream, uint32(n), nil
}

func (c *Client) visit(ctx context.Context, client, name, upgrade string) (link.Stream, http.Header, error) {
	stream, err := c.session.OpenStream(ctx)
	if err != nil {
		return nil, nil, err
	}
	// Everything below that waits ends with ctx.
	stop := context.AfterFunc(ctx, stream.Reset)
	header, err := askVisit(stream, pathVisit(client, name), upgrade)
	if !stop() { // what it broke says less
		err = ctx.Err()
	}
	if err != nil {
		stream.Reset()
		stream.Close()
		return nil, nil, err
	}
	return stream, header, nil
}

// askVisit requests a visit on a new stream, without reading a single byte of the tunnel's data. It
// returns the header of the relay's response.
func askVisit(stream link.Stream, path, upgrade string) (http.Header, error) {
	req, err := http.NewRequest(http.MethodPost, "http://relay"+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", upgrade)
	var text bytes.Buffer
	if err := req.Write(&text); err != nil {
		return nil, err
	}
	if _, err := stream.Write(text.Bytes()); err != nil {
		return nil, fmt.Errorf("ask the relay for a visit: %w", err)
	}
	head, err := readHead(stream)
	if err != nil {
		return nil, fmt.Errorf("read the relay's answer to a visit: %w", err)
	}
	rest := io.Reader(bytes.NewReader(head))
	if !strings.HasPrefix(string(head), "HTTP/1.1 101 ") {
		rest = io.MultiReader(rest, stream)
	}
	res, err := http.ReadResponse(bufio.NewReader(rest), req)
	if err != nil {
		return nil, fmt.Errorf("the relay's answer to a visit does not parse: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusSwitchingProtocols {
		if !strings.EqualFold(res.Header.Get("Upgrade"), upgrade) {
			return nil, errors.New("the relay's answer to a visit is of another protocol")
		}
		return res.Header, nil
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the relay's answer to a visit: %w", err)
	}
	return nil, problem(res.StatusCode, body)
}

// readHead reads up to the empty line that ends a message's head, and not a byte more.
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
