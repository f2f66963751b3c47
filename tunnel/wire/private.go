package wire

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A private tunnel has no public address: its visitors are agents of the same
// relay, who come by their own session. It is called CLIENT/NAME: the relay's name
// of the client whose tunnel it is, and a name that this client has once.

// PathVisit leads an agent to a private tunnel: POST /v1/visit/CLIENT/NAME with
// Connection: Upgrade and Upgrade: UpgradeVisit. The answer is 101, and from then on
// the stream is the visitor's connection. GET answers 204 where a visit would be let
// in, and HeaderType has the tunnel's type. Only a relay with FeaturePrivate.
const (
	PathVisit    = "/v1/visit/"
	UpgradeVisit = "adit-visit"
	HeaderType   = "Adit-Type" // absent: tcp
)

// UpgradeVisitUDP asks in place of UpgradeVisit for a visit of a tunnel of type udp. The
// answer 101 has the number of a flow in HeaderFlow: the visit's packets are Flows of
// EndpointVisits with this number, in both directions, as long as the stream is open, on
// which nothing more comes. Only a relay with FeaturePrivateUDP.
const (
	UpgradeVisitUDP = "adit-visit-udp"
	HeaderFlow      = "Adit-Flow"
	// EndpointVisits is the Endpoint of the flows of the agent's own visits; no Grant
	// has this number.
	EndpointVisits uint32 = 0
)

// PathInvitations tells an agent by GET which private tunnels run and let it in: the
// answer is Invitations. Only a relay with FeatureInvitations.
const PathInvitations = "/v1/invitations"

// Invitations are private tunnels that run and let an agent in, as CLIENT/NAME, beside
// those that are its own.
type Invitations struct {
	Tunnels []string `json:"tunnels"`       // sorted; the first MaxInvitations
	UDP     []string `json:"udp,omitempty"` // those of Tunnels that are of type udp
}

// MaxInvitations bounds Invitations.Tunnels.
const MaxInvitations = 1000

const (
	// MaxVisitors bounds Claim.Visitors.
	MaxVisitors = 100
	// AnyClient among Claim.Visitors lets every client of the relay in.
	AnyClient = "*"
	// privateScheme is that of a private tunnel's URL.
	privateScheme = "adit://"
)

var (
	clientName  = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$`)
	privateName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

// ValidPrivateName reports whether name can be a private tunnel's: one label in
// lower case.
func ValidPrivateName(name string) bool { return privateName.MatchString(name) }

// PrivateURL is where the clients of a relay find a private tunnel.
func PrivateURL(client, name string) string { return privateScheme + client + "/" + name }

// ParsePrivate reads what a person calls a private tunnel: CLIENT/NAME, or its URL.
func ParsePrivate(text string) (client, name string, err error) {
	rest := strings.ToLower(strings.TrimSpace(text))
	rest = strings.TrimSuffix(strings.TrimPrefix(rest, privateScheme), "/")
	client, name, ok := strings.Cut(rest, "/")
	if !ok || !clientName.MatchString(client) || !ValidPrivateName(name) {
		return "", "", errors.New("a private tunnel is called CLIENT/NAME, such as nas/ssh")
	}
	return client, name, nil
}

// CheckVisitors says why visitors cannot be those of a private tunnel.
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
