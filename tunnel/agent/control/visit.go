package control

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// maxVisitHead bounds the head of the relay's answer to a visit.
const maxVisitHead = 4 << 10

// MayVisit asks whether another client's private tunnel runs and lets this client in;
// the tunnel's local service is not asked.
func (c *Client) MayVisit(ctx context.Context, client, name string) error {
	return c.call(ctx, http.MethodGet, pathVisit(client, name), nil, nil)
}

func pathVisit(client, name string) string { return wire.PathVisit + client + "/" + name }

// Invitations asks which private tunnels of others, CLIENT/NAME, there are to visit.
func (c *Client) Invitations(ctx context.Context) ([]string, error) {
	var answer wire.Invitations
	if err := c.call(ctx, http.MethodGet, wire.PathInvitations, nil, &answer); err != nil {
		return nil, err
	}
	var list []string
	for _, tunnel := range answer.Tunnels {
		if client, name, err := wire.ParsePrivate(tunnel); err == nil && len(list) < wire.MaxInvitations {
			list = append(list, client+"/"+name)
		}
	}
	return list, nil
}

// Visit has the relay lead a new stream to another client's private tunnel.
func (c *Client) Visit(ctx context.Context, client, name string) (link.Stream, error) {
	stream, err := c.session.OpenStream(ctx)
	if err != nil {
		return nil, err
	}
	// Whatever waits below ends with ctx.
	stop := context.AfterFunc(ctx, stream.Reset)
	err = askVisit(stream, pathVisit(client, name))
	if !stop() { // what it broke says less
		err = ctx.Err()
	}
	if err != nil {
		stream.Reset()
		stream.Close()
		return nil, err
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
