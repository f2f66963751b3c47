package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"adit/tunnel/agent/refusal"
	"adit/tunnel/wire"
)

// Policy asks for the policy of the tunnel with the given key. It also returns the policy's ETag,
// or "" if the relay sends none.
func (c *Client) Policy(ctx context.Context, key string) (wire.Policy, string, error) {
	return c.policy(ctx, http.MethodGet, key, nil, nil)
}

// SetPolicy sets who may visit, and returns the policy that the relay then holds. The If-Match and
// If-None-Match fields of expected say what it may replace (RFC 9110, section 13.1).
func (c *Client) SetPolicy(ctx context.Context, key string, document json.RawMessage, expected http.Header) (wire.Policy, string, error) {
	return c.policy(ctx, http.MethodPut, key, document, expected)
}

func (c *Client) policy(ctx context.Context, method, key string, document json.RawMessage, expected http.Header) (p wire.Policy, tag string, err error) {
	var in any
	if document != nil {
		in = document
	}
	header, err := c.callWith(ctx, expected, method, wire.PathPolicy+url.PathEscape(key), in, &p)
	var no *refused
	if errors.As(err, &no) && no.status == http.StatusNotFound {
		err = &refusal.Error{Code: refusal.CodeRelayRejected, Message: "the relay is too old to show its policies; ask its operator to update it"}
	}
	return p, header.Get("ETag"), err
}
