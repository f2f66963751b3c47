package state

import (
	"testing"

	"adit/tunnel/agent/definition"
	"adit/tunnel/wire"
)

// TestAGrantIsKeptAsLongAsItIsWhatIsWanted, and given up for another name or port.
func TestAGrantIsKeptAsLongAsItIsWhatIsWanted(t *testing.T) {
	const url = "https://shop.example.com"
	named, chosen := Grant{Domain: "shop.example.com", PublicURL: url}, Grant{Domain: "shop.example.com", PublicURL: url, Chosen: true}
	numbered := Grant{RemotePort: 25565, PublicURL: "tcp://example.com:25565"}
	web := func(domain string) definition.Tunnel {
		return definition.Tunnel{Type: wire.TypeHTTPS, Mode: wire.ModeStandard, Domain: domain}
	}
	tcp := func(port int) definition.Tunnel {
		return definition.Tunnel{Type: wire.TypeTCP, Mode: wire.ModeStandard, RemotePort: port}
	}
	for name, test := range map[string]struct {
		had  Grant
		want definition.Tunnel
		kept bool
	}{
		"any name":                            {named, web(""), true},
		"that name":                           {named, web("shop.example.com"), true},
		"that label":                          {chosen, web("shop"), true},
		"another name":                        {named, web("store"), false},
		"a name that begins alike":            {named, web("sho"), false},
		"any name, where one was chosen":      {chosen, web(""), false},
		"any port":                            {numbered, tcp(0), true},
		"that port":                           {numbered, tcp(25565), true},
		"another port":                        {numbered, tcp(25566), false},
		"any port, where one was chosen":      {Grant{RemotePort: 25565, Chosen: true}, tcp(0), false},
		"the chosen port":                     {Grant{RemotePort: 25565, Chosen: true}, tcp(25565), true},
		"a port in place of a name":           {named, tcp(0), false},
		"a name in place of a port":           {numbered, web(""), false},
		"a private tunnel in place of a port": {numbered, definition.Tunnel{Type: wire.TypeTCP, Mode: wire.ModePrivate}, false},
		"anything, where nothing was given":   {Grant{}, web("shop"), true},
	} {
		want := test.had
		if !test.kept {
			want.GivenUp, want.PublicURL = true, ""
		}
		if got := test.had.Of(test.want); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	if got := (Grant{PublicURL: url, Chosen: true}).GaveUp(); got != (Grant{}) {
		t.Errorf("nothing given up: got %+v, want nothing", got)
	}
}
