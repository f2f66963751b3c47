package publish

import (
	"time"

	"adit/localapi/client"
)

// published is what a short form publishes.
type published struct {
	client.TunnelCreate

	Folder   string // whose files it is; empty: another local service's
	User     string // that visitors are asked for with the password; empty: any
	Password string // that visitors are asked for; empty: none
	AnyName  bool   // nobody asked for the name: where it is taken, another will do

	Ends time.Time // when it ends by itself, by the clock of the wall; zero: never
}

// lasting returns p with an end that is d from now; if zero, it never ends by itself.
func (p published) lasting(d time.Duration) published {
	if d > 0 {
		p.Ends = time.Now().Add(d).Round(0)
	}
	return p
}

// userName returns the user name that visitors enter with the password.
func (p published) userName() string {
	if p.User == "" {
		return "any user name"
	}
	return "user name " + p.User
}

// command returns the short form itself.
func (p published) command() string {
	if p.Folder != "" {
		return "adit files"
	}
	return "adit " + string(p.Type)
}

// publishedTunnel is a tunnel in a short form's JSON document.
type publishedTunnel struct {
	client.Tunnel

	Folder   string `json:"folder,omitempty"`
	User     string `json:"user,omitempty"`
	Password string `json:"password,omitempty"`

	EndsAt time.Time `json:"ends_at,omitzero"`
}
