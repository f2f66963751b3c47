package client

import (
	"context"
	"net/http"
)

// TaggedPolicy is a policy and its ETag, which changes with every edit, whoever makes it. The ETag
// is empty if the relay sends none.
type TaggedPolicy struct {
	TunnelPolicy
	ETag string `json:"etag,omitempty"`
}

// TunnelPolicy returns the policy of a tunnel.
func (c *Client) TunnelPolicy(ctx context.Context, id string) (TaggedPolicy, error) {
	return c.policy(ctx, nil, http.MethodGet, id, nil)
}

// SetTunnelPolicy sets the policy of a tunnel, if the relay's operator lets this client do so.
// document may be anything that encodes to a JSON object: a map, a struct or a json.RawMessage.
// With an ETag, it replaces only the policy that was read with that ETag: if somebody else has
// changed the policy since, it stays, and the refusal is ErrorCodePreconditionFailed. Without an
// ETag, it replaces whatever is there.
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
