package wire

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A private tunnel has no public address. Its visitors are agents of the same relay, which
// reach it through their own sessions. It is identified as CLIENT/NAME: the relay's name for
// the client that owns the tunnel, and a name that is unique within that client.

// PathVisit connects an agent to a private tunnel: POST /v1/visit/CLIENT/NAME with Connection:
// Upgrade and Upgrade: UpgradeVisit. The answer is 101, and from then on the stream is the
// visitor's connection. GET answers 204 if a visit would be let in, with the tunnel's type in
// HeaderType. It needs FeaturePrivate.
const (
	PathVisit    = "/v1/visit/"
	UpgradeVisit = "adit-visit"
	HeaderType   = "Adit-Type" // absent: tcp
)

// UpgradeVisitUDP is used instead of UpgradeVisit to visit a tunnel of type udp. The 101
// answer has a flow number in HeaderFlow. The visit's packets are Flows of EndpointVisits with
// this number, in both directions, for as long as the stream is open; the stream itself
// carries nothing more. It needs FeaturePrivateUDP.
const (
	UpgradeVisitUDP = "adit-visit-udp"
	HeaderFlow      = "Adit-Flow"
	// EndpointVisits is the Endpoint of the flows of the agent's own visits. No Grant has this
	// number.
	EndpointVisits uint32 = 0
)

// PathInvitations lists, on GET, the running private tunnels that admit the agent, as
// Invitations. It needs FeatureInvitations.
const PathInvitations = "/v1/invitations"

// Invitations are the running private tunnels that admit an agent, as CLIENT/NAME, without the
// agent's own.
type Invitations struct {
	Tunnels []string `json:"tunnels"`       // sorted; at most MaxInvitations
	UDP     []string `json:"udp,omitempty"` // those of Tunnels that are of type udp
}

// MaxInvitations bounds Invitations.Tunnels.
const MaxInvitations = 1000

const (
	// MaxVisitors bounds Claim.Visitors.
	MaxVisitors = 100
	// AnyClient in Claim.Visitors admits every client of the relay.
	AnyClient = "*"
	// privateScheme begins a private tunnel's URL.
	privateScheme = "adit://"
)

var (
	clientName  = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$`)
	privateName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

// ValidPrivateName reports whether name is a valid name for a private tunnel: one label in
// lower case.
func ValidPrivateName(name string) bool { return privateName.MatchString(name) }

// PrivateURL returns the URL by which the clients of a relay find a private tunnel.
func PrivateURL(client, name string) string { return privateScheme + client + "/" + name }

// ParsePrivate parses the way a user names a private tunnel: CLIENT/NAME, or its URL.
func ParsePrivate(text string) (client, name string, err error) {
	rest := strings.ToLower(strings.TrimSpace(text))
	rest = strings.TrimSuffix(strings.TrimPrefix(rest, privateScheme), "/")
	client, name, ok := strings.Cut(rest, "/")
	if !ok || !clientName.MatchString(client) || !ValidPrivateName(name) {
		return "", "", errors.New("a private tunnel is called CLIENT/NAME, such as nas/ssh")
	}
	return client, name, nil
}

// CheckVisitors returns an error if visitors cannot be the visitors of a private tunnel.
func CheckVisitors(visitors []string) error {
	if len(visitors) > MaxVisitors {
		return fmt.Errorf("there must be at most %d names", MaxVisitors)
	}
	for i, v := range visitors {
		if v != AnyClient && !clientName.MatchString(v) {
			if len(v) > 64 {
				v = strings.ToValidUTF8(v[:64], "") + "…"
			}
			return fmt.Errorf("%q is not the name of a client; write the names that clients have at the relay, or * for all its clients", v)
		}
		if slices.Contains(visitors[:i], v) {
			return fmt.Errorf("%s is given twice", v)
		}
	}
	return nil
}
