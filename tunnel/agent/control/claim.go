package control

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"adit/internal/wildcard"
	"adit/tunnel/wire"
)

// Claim asks the relay for an endpoint. It does not ask a relay that lacks a feature of the claim,
// which would serve visitors as if it had it.
func (c *Client) Claim(ctx context.Context, key string, want wire.Claim) (wire.Grant, error) {
	if want.ChangesHeaders() && !c.Can(wire.FeatureHeaders) {
		field := "request_headers"
		if want.RequestHeaders.IsZero() {
			field = "response_headers"
		}
		return wire.Grant{}, &wire.Problem{
			Code: wire.CodeInvalid, Field: field,
			Message: "the relay is too old to change headers; publish the tunnel without header changes, or ask its operator to update it",
		}
	}
	if len(want.Paths) > 0 && !c.Can(wire.FeaturePaths) {
		return wire.Grant{}, &wire.Problem{
			Code: wire.CodeInvalid, Field: "paths",
			Message: "the relay is too old to send paths to their own services; publish it without paths, or ask its operator to update it",
		}
	}
	if wildcard.Is(want.Domain) && !c.Can(wire.FeatureWildcards) {
		return wire.Grant{}, &wire.Problem{
			Code: wire.CodeInvalid, Field: "domain",
			Message: "the relay is too old to give a tunnel all names below a domain; choose a single name, or ask its operator to update it",
		}
	}
	if want.Mode == wire.ModePrivate && !c.Can(wire.FeaturePrivate) {
		return wire.Grant{}, &wire.Problem{
			Code: wire.CodeInvalid, Field: "mode",
			Message: "the relay is too old for private tunnels; choose another mode, or ask its operator to update it",
		}
	}
	if want.Mode == wire.ModePrivate && want.Type == wire.TypeUDP && !c.Can(wire.FeaturePrivateUDP) {
		return wire.Grant{}, &wire.Problem{
			Code: wire.CodeInvalid, Field: "type",
			Message: "the relay is too old for private tunnels of any type but tcp; choose tcp, or ask its operator to update it",
		}
	}
	if len(want.Policy) > 0 && !c.Can(wire.FeaturePolicies) {
		return wire.Grant{}, &wire.Problem{
			Code: wire.CodeInvalid, Field: "policy",
			Message: "the relay is too old to restrict who visits a tunnel from the start; publish it without a password or other policy, or ask its operator to update it",
		}
	}
	if want.PolicyHolds && !c.Can(wire.FeaturePolicyHolds) {
		return wire.Grant{}, &wire.Problem{
			Code: wire.CodeInvalid, Field: "policy",
			Message: "the relay is too old for policies declared in adit.toml; set the policy in another way, or ask its operator to update it",
		}
	}
	var g wire.Grant
	err := c.call(ctx, http.MethodPut, wire.PathClaims+url.PathEscape(key), want, &g)
	switch {
	case err != nil:
	case len(g.EndpointID)+len(g.Domain)+len(g.PublicURL) > maxGrant:
		err = &wire.Problem{Code: wire.CodeInvalid, Message: "the address that it gives the tunnel is too long"}
	case !isPublic(g.PublicURL):
		err = &wire.Problem{Code: wire.CodeInvalid, Message: "the address that it gives the tunnel is not a public URL"}
	}
	return g, err
}

// isPublic reports whether a tunnel may have an address, which programs open for people:
// one of another scheme may be a file or a program of this machine.
func isPublic(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && slices.Contains([]string{"http", "https", "tls", "tcp", "udp", "adit"}, u.Scheme)
}
