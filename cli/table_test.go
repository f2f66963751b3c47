package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"adit/cli/terminal"
)

// atScreen runs a command for a person whose screen has so many columns; 0 is for
// another program that reads what it prints.
func atScreen(t *testing.T, columns int, args ...string) string {
	t.Helper()
	out := new(bytes.Buffer)
	env := &Env{
		In: strings.NewReader(""), Out: out, Err: new(bytes.Buffer), Getenv: os.Getenv, Terminal: columns > 0,
		Screen: func() (int, int) { return columns, 24 },
	}
	Run(t.Context(), env, args)
	return out.String()
}

// tunnelsJSON is what tunnels of ordinary names and addresses look like.
func tunnelsJSON(names ...string) string {
	var all []string
	for i, name := range names {
		all = append(all, strings.NewReplacer(
			`"t_1"`, fmt.Sprintf(`"tun_%020d"`, i), `"shop"`, `"`+name+`"`, "https://shop.relay.example", "https://q7nfz2kdbe.tunnel.example.com",
		).Replace(tunnelJSON))
	}
	return `{"data":{"items":[` + strings.Join(all, ",") + `]}}`
}

func ordinary(t *testing.T) *fakeDaemon {
	d := newFakeDaemon(t)
	d.set("GET /api/v1/tunnels", tunnelsJSON("https-3000", "home-assistant", "ssh-of-the-workshop"))
	d.set("GET /api/v1/tunnels/tun_00000000000000000002", `{"data":`+strings.Replace(otherJSON, "the port is taken", "the relay refuses the port 20022: it is held by another client, who has it since 2026-05-01; ask for another one", 1)+`}`)
	d.set("GET /api/v1/endpoints", `{"data":{"items":[{"id":"ep_0af91348fe30ccf4a656","tunnel_id":"tun_0af91348fe30ccf4a656","name":"home-assistant","type":"https","mode":"standard","public_url":"https://q7nfz2kdbe.tunnel.example.com","local":"127.0.0.1:3000","state":"running","since":"2026-05-04T10:20:30Z","connections":{"open":11,"total":1234},"bytes":{"in":987654,"out":987654321}}]}}`)
	d.set("GET /api/v1/requests", `{"data":{"items":[{`+strings.NewReplacer(`r_1`, `req_1234`, "/orders", "/api/v2/customers/4711/orders?since=2026-05-01&page=2&sort=newest").Replace(requestRow)+`}]}}`)
	d.set("GET /api/v1/config", `{"data":{"config_file":"/home/somebody/.config/adit/adit.toml","config_file_exists":false,"state_dir":"/home/somebody/.local/state/adit","settings":[{"key":"local_api.bearer_token_file","value":"","source":"default"},{"key":"local_api.allowed_origins","value":["https://one.example.com","https://two.example.com","https://three.example.com"],"source":"file"}],"error":{"message":"must be one of the modes that there are, which are standard and balanced","line":3,"key":"tunnel[0].mode"}}}`)
	d.set("GET /api/v1/logs", `{"data":{"items":[{"time":"2026-05-04T10:20:30Z","level":"warn","message":"session lost","fields":{"relay":"relay.example.com:4433","reason":"the relay has not answered for 15 s, and will be asked again"}}]}}`)
	d.set("POST /api/v1/diagnostics", `{"data":{"items":[{"name":"a","status":"failed","tried":"127.0.0.1:3000, the local service of the tunnel https-3000","result":"connection refused","advice":"Start the service on 127.0.0.1:3000, or change the tunnel's local address; visitors are turned away until then."}]}}`)
	at := `"2026-05-04T10:20:30Z"`
	for path, item := range map[string]string{
		"clients":  `{"name":"laptop-of-ann","state":"active","created_at":` + at + `,"sessions":2,"claims":12,"tokens":[{},{}],"usage":{"state":"throttled"},"seen":{"at":` + at + `}}`,
		"nodes":    `{"id":"n_1dca0003cb7de82753","name":"relay-1","self":true,"reachable":true,"sessions":120,"endpoints":450,"visitors":1200,"agent_address":"relay-1.example.com:4433","version":"v1.4.0","started_at":` + at + `}`,
		"access":   `{"time":` + at + `,"visitor":"2001:db8:1234:5678::9","status":404,"method":"GET","host":"q7nfz2kdbe.tunnel.example.com","path":"/api/v2/customers/4711/orders","bytes_in":12345,"bytes_out":123456,"duration":12000000,"refused":"country"}`,
		"audit":    `{"seq":1234,"time":` + at + `,"actor":{"kind":"account","name":"administrator","address":"2001:db8:1234:5678::9"},"action":"client.rotate","target":"laptop-of-ann"}`,
		"policies": `{"target":"q7nfz2kdbe.tunnel.example.com","changed_at":` + at + `}`,
		"sinks":    `{"name":"siem","url":"https://siem.example.com/hooks/adit/events","events":["access","audit"],"state":{"sent":12345,"queued":12,"dropped":3}}`,
		"domains":  `{"domain":"q7nfz2kdbe.tunnel.example.com","client":"laptop-of-ann","running":true,"proof":"the relay's own"}`,
	} {
		d.set("GET /api/v1/"+path, `{"data":{"items":[`+item+`],"complete":true}}`)
	}
	t.Setenv("ADIT_RELAY_ADMIN_URL", d.URL)
	t.Setenv("ADIT_RELAY_ADMIN_TOKEN", "adit_admin_x")
	return d
}

// TestWhatAPersonSeesFitsTheScreen holds that with ordinary values nothing runs
// over the edge of a usual screen, and that a public address is shown whole.
func TestWhatAPersonSeesFitsTheScreen(t *testing.T) {
	ordinary(t)
	for _, command := range []string{
		"tunnel list", "tunnel show ssh-of-the-workshop", "endpoints", "requests list", "status", "logs", "doctor", "config",
		"relay client list", "relay nodes", "relay access", "relay audit list", "relay policy list", "relay sink list", "relay domains",
	} {
		const columns = 80
		args := strings.Fields(command)
		narrow, piped := atScreen(t, columns, args...), atScreen(t, 0, args...)
		if strings.Count(narrow, "\n") < strings.Count(piped, "\n") || piped == "" {
			t.Errorf("%s: got\n%s\nwant as many lines as in\n%s", command, narrow, piped)
		}
		for line := range strings.Lines(narrow) {
			if line = strings.TrimSuffix(line, "\n"); terminal.Columns(line) > columns {
				t.Errorf("%s: got a line of %d columns, want at most %d: %s", command, terminal.Columns(line), columns, line)
			}
		}
		const address = "q7nfz2kdbe.tunnel.example.com"
		if strings.Contains(piped, "https://"+address) && !strings.Contains(narrow, "https://"+address) {
			t.Errorf("%s: the public address is not whole in\n%s", command, narrow)
		}
		if wide := atScreen(t, 500, args...); wide != piped {
			t.Errorf("%s: got on a wide screen\n%s\nwant what is piped\n%s", command, wide, piped)
		}
		document := atScreen(t, columns, append(args, "--json")...)
		if document != atScreen(t, 0, append(args, "--json")...) || command != "logs" && !json.Valid([]byte(document)) {
			t.Errorf("%s: --json follows the screen", command)
		}
	}
}

func TestNarrowListOfTunnelsNamesEachAsCommandsTakeIt(t *testing.T) {
	d := ordinary(t)
	for _, c := range []struct {
		names   []string
		columns int
		want    string
	}{
		{[]string{"web", "web"}, 80, `
NAME                      LOCAL  STATE    URL
tun_00000000000000000000  3000   running  https://q7nfz2kdbe.tunnel.example.com
tun_00000000000000000001  3000   running  https://q7nfz2kdbe.tunnel.example.com
`},
		{[]string{"web"}, 80, `
NAME  TYPE   LOCAL           STATE    URL
web   https  127.0.0.1:3000  running  https://q7nfz2kdbe.tunnel.example.com
`},
		{[]string{strings.Repeat("long", 12), "网站"}, 80, `
NAME                       LOCAL  STATE    URL
longlonglonglonglonglong…  3000   running  https://q7nfz2kdbe.tunnel.example.com
网站                       3000   running  https://q7nfz2kdbe.tunnel.example.com
`},
		{[]string{"home-assistant"}, 40, `
NAME          STATE    URL
home-assist…  running  https://q7nfz2kdbe.tunnel.example.com
`},
	} {
		d.set("GET /api/v1/tunnels", tunnelsJSON(c.names...))
		if got := "\n" + atScreen(t, c.columns, "tunnel", "list"); got != c.want {
			t.Errorf("%v in %d columns: got%s\nwant%s", c.names, c.columns, got, c.want)
		}
	}
}
