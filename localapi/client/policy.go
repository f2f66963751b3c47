package client

import (
	"context"
	"net/http"
)

// TaggedPolicy is a policy and its ETag: another one with every change, whoever
// made it. It is empty where the relay tells none.
type TaggedPolicy struct {
	TunnelPolicy
	ETag string `json:"etag,omitempty"`
}

// TunnelPolicy returns who is let in to a tunnel.
func (c *Client) TunnelPolicy(ctx context.Context, id string) (TaggedPolicy, error) {
	return c.policy(ctx, nil, http.MethodGet, id, nil)
}

// SetTunnelPolicy sets who is let in to a tunnel, where the relay's operator lets
// this client do so. The document is what becomes a JSON object: a map, a struct or
// a json.RawMessage. With an ETag it replaces the policy that was read with that,
// and no other: what somebody else has changed since stays, and the refusal is
// ErrorCodePreconditionFailed. Without one it replaces whatever is there.
func (c *Client) SetTunnelPolicy(ctx context.Context, id string, document any, etag string) (TaggedPolicy, error) {
	header := make(http.Header)
	if etag != "" {
		header.Set("If-Match", etag)
	}
	return c.policy(ctx, header, http.MethodPut, id, document)
}

func (c *Client) policy(ctx context.Context, header http.Header, method, id string, document any) (TaggedPolicy, error) {
	var p TaggedPolicy
	answer, err := c.callWith(ctx, header, method, tunnelPath(id)+"/policy", document, &p.TunnelPolicy)
	if err == nil {
		p.ETag = answer.Get("ETag")
	}
	return p, err
}
