package cli

import (
	"strings"
	"testing"

	"adit/cli/command"
)

// TestTunnelIsFoundByItsDomain has commands take what adit tunnel create --domain
// took: people give a domain more often than a name.
func TestTunnelIsFoundByItsDomain(t *testing.T) {
	edit := func(id, name, domain, url string) string {
		return strings.NewReplacer(`"t_1"`, `"`+id+`"`, `"name":"shop"`, `"name":"`+name+`"`, `"domain":"shop"`, `"domain":"`+domain+`"`,
			"https://shop.relay.example", url).Replace(tunnelJSON)
	}
	all := strings.Join([]string{
		edit("t_1", "https-3000", "shop", "https://shop.relay.example:8443"),
		edit("t_2", "https-4000", "blog", "https://blog.relay.example"),
		edit("t_3", "http-4000", "blog", "http://blog.relay.example"),
		edit("t_4", "blog2", "x", ""),
		edit("t_5", "x", "y", ""),
		edit("t_6", "no-domain", "", "tcp://relay.example:20022"),
	}, ",")
	for named, want := range map[string]string{
		"shop": "t_1", "shop.relay.example": "t_1", "Shop.Relay.Example": "t_1", "t_2": "t_2",
		"x":             "t_5", // its name, and another's domain
		"blog":          "2 tunnels have the name or domain \"blog\"; name one by its id: t_2, t_3",
		"relay.example": "there is no tunnel", "": "there is no tunnel",
	} {
		d := newFakeDaemon(t)
		d.set("GET /api/v1/tunnels", `{"data":{"items":[`+all+`]}}`)
		for _, id := range []string{"t_1", "t_2", "t_5"} {
			d.set("POST /api/v1/tunnels/"+id+"/stop", `{"data":`+tunnelJSON+`}`)
		}
		code, _, errs := run(t, "", "tunnel", "stop", named)
		asked := d.requests()
		if (code == command.ExitDone) != strings.HasPrefix(want, "t_") || !strings.Contains(asked[len(asked)-1]+errs, want) {
			t.Errorf("%q: got exit code %d, %q and %q, want %s", named, code, asked, errs, want)
		}
	}
}
