package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adit/cli/command"
	"adit/cli/localtime"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	localtime.Zone = time.UTC
	os.Exit(m.Run())
}

// testEnv is an Env whose streams are kept.
func testEnv(in string) (env *Env, out, errs *bytes.Buffer) {
	out, errs = new(bytes.Buffer), new(bytes.Buffer)
	return &Env{In: strings.NewReader(in), Out: out, Err: errs, Getenv: os.Getenv}, out, errs
}

func run(t *testing.T, in string, args ...string) (code int, out, errs string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	env, o, e := testEnv(in)
	code = Run(ctx, env, args)
	return code, o.String(), e.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != strings.ReplaceAll(string(want), "\r\n", "\n") {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func TestCommandsPrintWhatTheDaemonSays(t *testing.T) {
	for name, args := range map[string][]string{
		"status":           {"status"},
		"status-json":      {"status", "--json"},
		"pause":            {"pause"},
		"resume":           {"resume"},
		"reconnect":        {"reconnect"},
		"login":            {"login", "adit_x"},
		"logout":           {"logout"},
		"logout-json":      {"logout", "--json"},
		"endpoints":        {"endpoints"},
		"endpoints-json":   {"endpoints", "--json"},
		"config":           {"config"},
		"tunnel-list":      {"tunnel", "list"},
		"tunnel-list-json": {"tunnel", "ls", "--json"},
		"tunnel-show":      {"tunnel", "show", "ssh"},
		"tunnel-create":    {"tunnel", "create", "3000"},
		"tunnel-delete":    {"tunnel", "delete", "shop"},
		"requests-list":    {"requests", "list"},
		"requests-show":    {"requests", "show", "r_1"},
		"requests-flow":    {"requests", "show", "r_2"},
		"requests-curl":    {"requests", "show", "r_1", "--curl"},
		"requests-export":  {"requests", "export"},
		"logs":             {"logs"},
		"logs-json":        {"logs", "--json"},
		"open":             {"open", "--print"},
		"open-json":        {"open", "--json"},
	} {
		t.Run(name, func(t *testing.T) {
			newFakeDaemon(t)
			code, out, errs := run(t, "", args...)
			if code != command.ExitDone || errs != "" {
				t.Errorf("got exit code %d and %q, want 0 and nothing", code, errs)
			}
			if strings.Contains(out, "\x1b") {
				t.Errorf("a visitor's control characters reach the screen: %q", out)
			}
			golden(t, name, out)
		})
	}
}

func TestStatusSaysWhatToDoNext(t *testing.T) {
	d := newFakeDaemon(t)
	d.set("GET /api/v1/status", `{"data":`+freshJSON+`}`)
	_, out, _ := run(t, "", "status")
	golden(t, "status-fresh", out)
	d.set("GET /api/v1/endpoints", `{"data":{"items":[]}}`)
	_, out, _ = run(t, "", "endpoints")
	golden(t, "endpoints-failed", out)
	d.set("GET /api/v1/tunnels", `{"data":{"items":[`+strings.Replace(tunnelJSON, `"running"`, `"waiting"`, 1)+`]}}`)
	_, out, _ = run(t, "", "endpoints")
	golden(t, "endpoints-waiting", out)
	d.set("GET /api/v1/tunnels", `{"data":{"items":[]}}`)
	_, out, _ = run(t, "", "endpoints")
	golden(t, "endpoints-none", out)
	d.set("GET /api/v1/endpoints", `{"data":{"items":[{"id":"e_7","name":"shop","public_url":"https://shop.relay.example","state":"running","error":"nothing listens"}]}}`)
	if _, out, _ := run(t, "", "endpoints"); !strings.Contains(out, "ERROR") || !strings.Contains(out, "nothing listens") {
		t.Errorf("of one whose service is down it says:\n%s", out)
	}
	d.set("GET /api/v1/endpoints", `{"data":{"items":[]}}`)
	if _, out, _ := run(t, "", "endpoints", "--json"); strings.Join(strings.Fields(out), "") != `{"items":[]}` {
		t.Errorf("got %s, want an empty list", out)
	}
}

func TestCompletionOffersWhatFits(t *testing.T) {
	newFakeDaemon(t)
	for line, want := range map[string]string{
		"tunnel show ":        "shop\thttps://shop.relay.example\nssh\t",
		"tunnel show x":       ":4\n",
		"tunnel delete shop ": ":4\n", // it takes one
		"http ":               ":4\n",
		"tunnel st":           "start\t",
		"relay backup ":       ":0\n", // a file

		"http --mode ":                       "standard\nbalanced\nprivate\n:4\n",
		"http 3000 --local_scheme h":         "http\nhttps\nh2c\n:4\n",
		"http 3000 --local-scheme ":          "http\nhttps\nh2c\n:4\n",
		"files --type ":                      "http\nhttps\n:4\n",
		"files --type=":                      "http\nhttps\n:4\n",
		"tunnel create 3000 --type ":         "http\nhttps\ntls\ntcp\nudp\n:4\n",
		"logs --level ":                      "debug\ninfo\nwarn\nerror\n:4\n",
		"requests list --tunnel s":           "shop\t",
		"http --domain ":                     ":4\n",
		"https 3000 --proxy_protocol ":       "v1\nv2\n:4\n",
		"relay start --proxy_protocol ":      "accept\nrequire\noff\n:4\n",
		"files --password_file ":             ":0\n",
		"relay start --config ":              ":0\n",
		"relay start --tls_cert ":            ":0\n",
		"relay start --data_dir ":            ":16\n", // a folder
		"relay client add a --over_quota ":   "warn\nthrottle\nstop\n:4\n",
		"tunnel policy set shop --if_match ": ":4\n",
	} {
		code, out, _ := run(t, "", append([]string{"__complete"}, strings.Split(line, " ")...)...)
		if code != command.ExitDone || !strings.HasPrefix(out, want) {
			t.Errorf("%q: got %d %q, want %q", line, code, out, want)
		}
	}
}

func TestExitCodesTellUsageFromFailure(t *testing.T) {
	d := newFakeDaemon(t)
	d.set("POST /api/v1/auth/configure", `{"error":{"code":"relay_rejected","message":"the relay refuses the token"}}`)
	d.set("POST /api/v1/reconnect", `{"error":{"code":"not_configured","message":"no auth token is configured yet"}}`)
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"status", 0, ""},
		{"", 0, ""},
		{"help", 0, ""},
		{"--help", 0, ""},
		{"tunnel --help", 0, ""},
		{"completion bash", 0, ""},
		{"version", 0, ""},
		{"doctor", 1, ""},
		{"login adit_revoked", 1, "adit: the relay refuses the token\n"},
		{"authtoken adit_revoked", 1, "adit: the relay refuses the token\n"},
		{"reconnect", 1, "adit: there is no auth token yet; run `adit login TOKEN` with one from your relay's operator\n"},
		{"tunnel show nope", 1, "adit: there is no tunnel \"nope\"; `adit tunnel list` shows all tunnels\n"},
		{"start", 1, "adit: this build has no daemon; use a released one\n"},
		{"frobnicate", 2, "adit: adit has no command \"frobnicate\"; see `adit help`\n"},
		{"sttart", 2, "did you mean \"start\"? See `adit help`"},
		{"tunnel lsit", 2, "adit: adit tunnel has no command \"lsit\"; did you mean \"list\"? See `adit help tunnel`\n"},
		{"relay client frob x", 2, "has no command \"frob\"; there are add"},
		{"help frobnicate", 2, "adit has no command \"frobnicate\"; see `adit help`"},
		{"logs --level loud", 2, "--level must be debug, info, warn or error, not \"loud\""},
		{"help tunnel lsit", 2, "adit tunnel has no command \"lsit\"; did you mean \"list\"?"},
		{"help status now", 2, "adit status has no subcommands"},
		{"help tunnel list", 0, ""},
		{"completion csh", 2, "adit completion has no command \"csh\""},
		{"--version", 0, ""},
		{"status --frob", 2, "adit: adit status has no flag --frob; see `adit help status`\n"},
		{"status --jsno", 2, "did you mean --json?"},
		{"status -x", 2, "has no flag -x"},
		{"tunnel create 80 --local-prot 81", 2, "did you mean --local_port?"},
		{"tunnel create --domain", 2, "--domain needs a value"},
		{"status now", 2, "takes no arguments"},
		{"tunnel", 2, "adit tunnel needs a command"},
		{"tunnel frob", 2, "has no command \"frob\""},
		{"tunnel show", 2, "needs TUNNEL"},
		{"tunnel show a b", 2, "also got \"b\""},
		{"tunnel create", 2, "say which local port"},
		{"tunnel create 0", 2, "must be 1 to 65535"},
		{"tunnel create 70000", 2, "must be 1 to 65535"},
		{"tunnel create a:b:c", 2, "neither a port nor HOST:PORT"},
		{"tunnel create ::1:80", 2, "in brackets: [::1]:80"},
		{"tunnel create fe80::1%eth0:8080", 2, "in brackets: [fe80::1%eth0]:8080"},
		{"tunnel create 80 --local_port 81", 2, "given twice"},
		{"tunnel create https://a:80 --local_scheme http", 2, "given twice"},
		{"https http://a:80 --local_scheme https", 2, "given twice"},
		{"https http://localhost:3000/admin", 2, "\"http://localhost:3000/admin\" has more than a scheme, a host and a port; write it as http://localhost:3000"},
		{"https http://ann:pw@localhost:3000", 2, "has more than a scheme, a host and a port"},
		{"http unix:/run/app.sock", 2, "\"unix:/run/app.sock\" is a file; a tunnel needs the port of a local service, such as 3000 or nas.lan:80"},
		{"http unix:///run/app.sock", 2, "\"unix:///run/app.sock\" is a file"},
		{"http ./app.sock", 2, "\"./app.sock\" is a file"},
		{"https localhost:3000/admin", 2, "\"localhost:3000/admin\" has more than a host and a port; write it as localhost:3000"},
		{"https http://", 2, "neither a port nor HOST:PORT"},
		{"tunnel create --local_port many", 2, "--local_port: \"many\" is not a number; see `adit help tunnel create`"},
		{"tunnel update shop", 2, "say what to change"},
		{"http", 2, "needs PORT"},
		{"http web", 2, "must be 1 to 65535"},
		{"login", 2, "adit login needs TOKEN; "},
		{"login a b c", 2, "adit login takes only TOKEN [CLIENT_ID]"},
		{"tunnel policy set", 2, "needs TUNNEL (its id, name or domain); "},
		{"relay policy set", 2, "needs TARGET; "},
		{"relay policy set a b c", 2, "takes only TARGET [FILE]"},
		{"requests import /no/such/file", 1, "adit: read the archive: open /no/such/file: there is no such file or folder; check the name\n"},
		{"tunnel policy set shop /no/such/file", 1, "open /no/such/file: there is no such file or folder; check the name\n"},
		{"requests show r_0", 1, "; `adit requests list` shows all\n"},
		{"login -", 2, "the token is empty"},
	} {
		code, out, errs := run(t, "", strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("adit %s: got exit code %d and %q, want %d and %q", c.args, code, errs, c.code, c.says)
		}
		if c.code == command.ExitDone && out == "" {
			t.Errorf("adit %s: got no output", c.args)
		}
		if strings.Count(errs, "\n") > 1 {
			t.Errorf("adit %s: got %q, want one line", c.args, errs)
		}
	}
}

func TestWithoutADaemonTheErrorSaysHowToStartIt(t *testing.T) {
	t.Setenv("ADIT_STATE_DIR", t.TempDir())
	for _, args := range [][]string{{"status"}, {"endpoints"}, {"tunnel", "list"}, {"http", "3000"}, {"doctor"}, {"open"}, {"logs"}} {
		code, out, errs := run(t, "", args...)
		if code != command.ExitFailed || !strings.Contains(errs, "adit start") || out != "" {
			t.Errorf("adit %v: got exit code %d, %q and %q", args, code, out, errs)
		}
	}
}

func TestFlagsReachTheDaemon(t *testing.T) {
	for _, c := range []struct{ in, args, want string }{
		{"", "login adit_x nas", `POST /api/v1/auth/configure {"auth_token":"adit_x","client_id":"nas"}`},
		{"  adit_y \nmore\n", "login -", `POST /api/v1/auth/configure {"auth_token":"adit_y"}`},
		{"", "tunnel create --local-port 3000", `POST /api/v1/tunnels {"local_port":3000}`},
		{
			"", "tunnel create --local_port 3000 --local_ip ::1 --type tcp --mode balanced --remote-port 22 --name n --domain d --local-scheme https --host_header h --proxy-protocol v1 --inspect=false",
			`POST /api/v1/tunnels {"type":"tcp","mode":"balanced","local_ip":"::1","local_port":3000,"domain":"d","name":"n","local_scheme":"https","remote_port":22,"host_header":"h","proxy_protocol":"v1","inspect":false}`,
		},
		{
			"", "tunnel create 3000 --request_header x-env:prod --request-header Cookie: --response_header Server:",
			`POST /api/v1/tunnels {"local_port":3000,"request_headers":{"Cookie":"","X-Env":"prod"},"response_headers":{"Server":""}}`,
		},
		{"", "tunnel update shop --request_header X-Env:a:b", `PATCH /api/v1/tunnels/t_1 {"request_headers":{"X-Env":"a:b"}}`},
		{
			"", "tunnel create 3000 --path /api=8080 --path /a=b/c=nas.lan:81,strip --path /v2=https://[::1]:8443/ --path=/g=h2c://9000,strip --path /h=82,strip,host=app.local:8080 --path /i,host=x=83,host=b.local,strip",
			`POST /api/v1/tunnels {"local_port":3000,"paths":[{"path":"/api","local_port":8080},{"path":"/a=b/c","local_ip":"nas.lan","local_port":81,"strip":true},` +
				`{"path":"/v2","local_ip":"::1","local_port":8443,"local_scheme":"https"},{"path":"/g","local_port":9000,"local_scheme":"h2c","strip":true},{"path":"/h","local_port":82,"host_header":"app.local:8080","strip":true},{"path":"/i,host=x","local_port":83,"host_header":"b.local","strip":true}]}`,
		},
		{"", "tunnel update shop --path /api=8080", `PATCH /api/v1/tunnels/t_1 {"paths":[{"path":"/api","local_port":8080}]}`},
		{"", "tunnel update shop --path=", `PATCH /api/v1/tunnels/t_1 {"paths":[]}`},
		{"", "tunnel update shop --response_header=", `PATCH /api/v1/tunnels/t_1 {"response_headers":{}}`},
		{"", "tunnel create https://nas.lan", `POST /api/v1/tunnels {"local_ip":"nas.lan","local_port":443,"local_scheme":"https"}`},
		{"", "tunnel create http://localhost:3000/", `POST /api/v1/tunnels {"local_ip":"localhost","local_port":3000,"local_scheme":"http"}`},
		{"", "tunnel create 3000 --path /api=http://[::1]", `POST /api/v1/tunnels {"local_port":3000,"paths":[{"path":"/api","local_ip":"::1","local_port":80,"local_scheme":"http"}]}`},
		{"", "tunnel create [::1]:8080", `POST /api/v1/tunnels {"local_ip":"::1","local_port":8080}`},
		{"", "tunnel update shop --local-port 3001 --inspect=false --domain=", `PATCH /api/v1/tunnels/t_1 {"local_port":3001,"domain":"","inspect":false}`},
		{"", "tunnel stop shop.relay.example", "POST /api/v1/tunnels/t_1/stop"},
		{"", "tunnel stop t_1", "POST /api/v1/tunnels/t_1/stop"},
		{"", "tunnel start shop", "POST /api/v1/tunnels/t_1/start"},
		{"", "tunnel rm t_1", "DELETE /api/v1/tunnels/t_1"},
		{"", "requests list --tunnel shop --status 5xx --q a/b --limit 3 --method POST --kind http", "GET /api/v1/requests?kind=http&limit=3&method=POST&q=a%2Fb&status=5xx&tunnel_id=t_1"},
		{"", "requests show r_1 --reveal", "GET /api/v1/requests/r_1?reveal=true"},
		{"", "requests replay r_1", "POST /api/v1/requests/r_1/replay {}"},
		{"", "requests replay r_1 --method PUT --path /x --body=", `POST /api/v1/requests/r_1/replay {"method":"PUT","path":"/x","body":""}`},
		{"", "requests replay r_1 --body=L\xe4den", `POST /api/v1/requests/r_1/replay {"body_base64":"TORkZW4="}`},
		{"", "requests clear", "DELETE /api/v1/requests"},
		{"", "requests export --reveal", "GET /api/v1/requests.har?reveal=true"},
		{"", "logs --level error --limit 7", "GET /api/v1/logs?level=error&limit=7"},
	} {
		d := newFakeDaemon(t)
		code, _, errs := run(t, c.in, strings.Fields(c.args)...)
		asked := d.requests()
		if code != command.ExitDone || len(asked) == 0 || asked[len(asked)-1] != c.want {
			t.Errorf("adit %s: got exit code %d, %q, and the request %v, want %s", c.args, code, errs, asked, c.want)
		}
	}
}

func TestHeaderFlagsThatAreNone(t *testing.T) {
	for flag, want := range map[string]string{
		"X-Env":  `it must be "Name: value", or "Name:" to remove the field`,
		": prod": `it must be "Name: value", or "Name:" to remove the field`,
	} {
		code, _, errs := run(t, "", "tunnel", "create", "3000", "--request_header", flag)
		if code != command.ExitUsage || !strings.Contains(errs, want) {
			t.Errorf("%q: got exit code %d, %q", flag, code, errs)
		}
	}
	code, _, errs := run(t, "", "https", "3000", "--response_header", "X-Env: a", "--response_header", "x-env: b")
	if code != command.ExitUsage || !strings.Contains(errs, "X-Env is given twice") {
		t.Errorf("twice: got exit code %d, %q", code, errs)
	}
}

// TestFlagsOfAnotherEncodingAreRefused: the daemon would be told other characters.
func TestFlagsOfAnotherEncodingAreRefused(t *testing.T) {
	d := newFakeDaemon(t)
	for name, value := range map[string]string{"name": "L\xe4den", "request_header": "X-Env: L\xe4den", "response_header": "X-Env: L\xe4den", "path": "/l\xe4den=8080"} {
		for _, args := range [][]string{{"tunnel", "create", "3000"}, {"tunnel", "update", "t_1"}} {
			code, _, errs := run(t, "", append(args, "--"+name, value)...)
			if code != command.ExitUsage || !strings.Contains(errs, "it must be UTF-8") {
				t.Errorf("%s --%s: got exit code %d, %q", args, name, code, errs)
			}
		}
	}
	if asked := d.changes(); len(asked) > 0 {
		t.Errorf("the daemon was asked for %q", asked)
	}
}

func TestPathFlagsThatAreNone(t *testing.T) {
	const form = "it must be a path and its local service, such as /api=8080, /api=HOST:PORT or /api=https://HOST:PORT; append ,strip to remove the path from requests, and ,host=NAME to set their Host header"
	for flag, want := range map[string]string{
		"8080":              form,
		"api=8080":          form,
		"/api":              form,
		"/api,strip":        form,
		"/api=":             `the port must be 1 to 65535, not ""`,
		"/api=0":            `the port must be 1 to 65535, not "0"`,
		"/api=8080,host=":   "host= is empty; give a Host, such as host=app.local",
		"/api=8080,stripp":  `the port must be 1 to 65535, not "8080,stripp"`,
		"/api=http://a:1/x": `"http://a:1/x" has more than a scheme, a host and a port`,
		"/api=::1:80":       `"::1:80" is neither a port nor HOST:PORT; put an IPv6 address in brackets: [::1]:80`,
	} {
		code, _, errs := run(t, "", "tunnel", "create", "3000", "--path", flag)
		if code != command.ExitUsage || !strings.HasPrefix(errs, "adit: --path: ") || !strings.Contains(errs, want) {
			t.Errorf("%q: got exit code %d, %q", flag, code, errs)
		}
	}
	code, _, errs := run(t, "", "https", "3000", "--path", "/api=1", "--path", "/api=2")
	if code != command.ExitUsage || !strings.Contains(errs, "/api is given twice") {
		t.Errorf("twice: got exit code %d, %q", code, errs)
	}
}

func TestABusyDaemonIsAskedAgain(t *testing.T) {
	d := newFakeDaemon(t)
	d.set("POST /api/v1/pause", `{"error":{"code":"control_busy","message":"another change is being made"}}`)
	done := make(chan int, 1)
	go func() {
		code, _, _ := run(t, "", "pause")
		done <- code
	}()
	deadline := time.Now().Add(20 * time.Second)
	for len(d.requests()) < 2 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	d.set("POST /api/v1/pause", `{"data":`+pausedJSON+`}`)
	if code := <-done; code != command.ExitDone {
		t.Errorf("got exit code %d, want 0 once the daemon is free", code)
	}
}

func TestOpenFallsBackToPrinting(t *testing.T) {
	newFakeDaemon(t)
	var shown string
	env, out, _ := testEnv("")
	env.OpenBrowser = func(_ context.Context, url string) error { shown = url; return nil }
	if code := Run(context.Background(), env, []string{"open"}); code != command.ExitDone || !strings.HasSuffix(shown, "/login#ABC") || strings.Contains(out.String(), "ABC") {
		t.Errorf("got exit code %d, opened %q, printed %q", code, shown, out)
	}
	env, out, _ = testEnv("")
	env.OpenBrowser = func(context.Context, string) error { return errors.New("no browser") }
	if code := Run(context.Background(), env, []string{"open"}); code != command.ExitDone || !strings.Contains(out.String(), "/login#ABC") {
		t.Errorf("without a browser: got exit code %d, printed %q", code, out)
	}
}

func TestStartHandsTheListenerOn(t *testing.T) {
	env, _, _ := testEnv("")
	var got string
	env.Daemon = func(_ context.Context, httpListen string) error { got = httpListen; return nil }
	if code := Run(context.Background(), env, []string{"start", "--http-listen", "127.0.0.1:0"}); code != command.ExitDone || got != "127.0.0.1:0" {
		t.Errorf("got exit code %d and %q", code, got)
	}
}

func TestExportWritesForTheOwnerAlone(t *testing.T) {
	newFakeDaemon(t)
	path := filepath.Join(t.TempDir(), "traffic.har")
	if code, _, errs := run(t, "", "requests", "export", path); code != command.ExitDone {
		t.Fatalf("got exit code %d: %s", code, errs)
	}
	b, err := os.ReadFile(path)
	if err != nil || !json.Valid(b) {
		t.Errorf("got %q, %v", b, err)
	}
}

// TestArchivesPassThroughPipes: a file called - is what nobody wants.
func TestArchivesPassThroughPipes(t *testing.T) {
	newFakeDaemon(t)
	t.Chdir(t.TempDir())
	code, out, errs := run(t, "", "requests", "export", "-")
	if code != command.ExitDone || !json.Valid([]byte(out)) || out == "" {
		t.Errorf("export: got exit code %d, %q, %s", code, out, errs)
	}
	if _, err := os.Stat("-"); err == nil {
		t.Error("export: there is a file called -")
	}
	if code, out, errs := run(t, `{"log":{}}`, "requests", "import", "-"); code != command.ExitDone || !strings.Contains(out, "Added 3.") {
		t.Errorf("import: got exit code %d, %q, %s", code, out, errs)
	}
	if code, _, errs := run(t, "hello", "requests", "import", "-"); code != command.ExitFailed || !strings.Contains(errs, "the standard input is not an HTTP Archive: it is not JSON") {
		t.Errorf("import of something else: got exit code %d, %s", code, errs)
	}
}

func TestImportChecksTheFileFirst(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		text string
		code int
		says string
	}{
		"good.har":  {`{"log":{}}`, command.ExitDone, "Added 3."},
		"text.har":  {`hello`, command.ExitFailed, "it is not JSON"},
		"large.har": {`{"log":"` + strings.Repeat("a", 1<<20) + `"}`, command.ExitFailed, "larger than 1 MiB"},
	} {
		d := newFakeDaemon(t)
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errs := run(t, "", "requests", "import", path)
		if code != c.code || !strings.Contains(out+errs, c.says) || (code == command.ExitDone) != (len(d.requests()) == 1) {
			t.Errorf("%s: got exit code %d, %q, %q and the requests %v", name, code, out, errs, d.requests())
		}
	}
}

func TestManPagesAreWrittenForEveryCommand(t *testing.T) {
	dir := t.TempDir()
	if code, _, errs := run(t, "", "man", dir); code != command.ExitDone {
		t.Fatalf("got exit code %d: %s", code, errs)
	}
	for _, name := range []string{"adit", "adit-status", "adit-tunnel", "adit-tunnel-create", "adit-login"} {
		b, err := os.ReadFile(filepath.Join(dir, name+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		for line := range strings.Lines(string(b)) {
			if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && !strings.HasPrefix(line, ".B") &&
				!strings.HasPrefix(line, ".TH ") && !strings.HasPrefix(line, ".SH ") && !strings.HasPrefix(line, ".TP") &&
				line != ".nf\n" && line != ".fi\n" {
				t.Errorf("%s: the line %q is no macro that is meant", name, line)
			}
		}
		// As the help does; of what is empty or off it says nothing.
		if name == "adit-tunnel-create" && (!strings.Contains(string(b), "(default true)") || strings.Contains(string(b), "(default false)")) {
			t.Errorf("%s: the defaults are not as in the help", name)
		}
		if name == "adit-tunnel-create" && !strings.Contains(string(b), `\-\-local_port INT`) {
			t.Errorf("%s: --local_port is missing", name)
		}
	}
}

func TestTheBearerTokenIsTakenFromTheConfiguration(t *testing.T) {
	for name, c := range map[string]struct{ file, token, env, want string }{
		"none":             {"", "", "", ""},
		"in the file":      {"[local_api]\nbearer_token = \"from-the-file-0123456789\"\n", "", "", "Bearer from-the-file-0123456789"},
		"in a file beside": {"[local_api]\nbearer_token_file = 'TOKEN'\n", "from-beside-0123456789\n", "", "Bearer from-beside-0123456789"},
		"environment":      {"[local_api]\nbearer_token = \"from-the-file-0123456789\"\n", "", "from-the-environment", "Bearer from-the-environment"},
		"broken file":      {"[local_api", "", "", ""},
	} {
		d := newFakeDaemon(t)
		dir := os.Getenv("ADIT_CONFIG_DIR")
		token := filepath.Join(dir, "token")
		for path, text := range map[string]string{filepath.Join(dir, "adit.toml"): strings.Replace(c.file, "TOKEN", token, 1), token: c.token} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("ADIT_BEARER_TOKEN", c.env)
		var shown string
		plain := d.Config.Handler
		d.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			shown = r.Header.Get("Authorization")
			plain.ServeHTTP(w, r)
		})
		if code, _, errs := run(t, "", "status"); code != command.ExitDone || shown != c.want {
			t.Errorf("%s: got exit code %d, %q, and the header %q, want %q", name, code, errs, shown, c.want)
		}
	}
}

// TestDoctorKeepsItsLinesShort holds that a long line of advice does not push
// the results of all checks off the screen.
func TestDoctorKeepsItsLinesShort(t *testing.T) {
	d := newFakeDaemon(t)
	d.set("POST /api/v1/diagnostics", `{"data":{"items":[{"name":"a","status":"ok","tried":"the token","result":"it is there","advice":""},{"name":"b","status":"failed","tried":"the service","result":"refused","advice":"`+strings.Repeat("long ", 30)+`"}]}}`)
	code, out, _ := run(t, "", "doctor")
	if code != command.ExitFailed || !strings.HasPrefix(out, "ok      the token: it is there\n") {
		t.Errorf("got %d and\n%s", code, out)
	}
}

func TestSpeedSaysWhatEachTransportGives(t *testing.T) {
	d := newFakeDaemon(t)
	d.set("POST /api/v1/speed", `{"data":{"items":[{"transport":"dtls","in_use":true,"rtt_ms":23.4,"bytes_per_second":{"in":524288,"out":1048576},"error":""},`+
		`{"transport":"tls","in_use":false,"rtt_ms":0,"bytes_per_second":{"in":0,"out":0},"error":"nothing answers"}],"advice":"Use another."}}`)
	code, out, errs := run(t, "", "speed")
	const want = `DTLS, in use  512.0 KiB/s from visitors, 1.0 MiB/s to visitors, round trip 23.4 ms
TLS           not measured: nothing answers
                -> Use another.
`
	if code != 0 || out != want || errs != "" {
		t.Errorf("got %d, %q and\n%s", code, errs, out)
	}
}

// TestRefusedLoginSaysWhatHelps: advice that does not fit the reason sends people
// the wrong way.
func TestRefusedLoginSaysWhatHelps(t *testing.T) {
	d := newFakeDaemon(t)
	for _, c := range []struct{ refusal, says, not string }{
		{`{"code":"relay_unreachable","message":"the relay at relay.example:4433 did not answer in time"}`, "nothing was changed", "doctor"},
		{`{"code":"invalid_token","field":"client_id","message":"the relay refused: the auth token belongs to another client than the client id says"}`, "leave out the client id", "copy"},
		{`{"code":"invalid_token","field":"auth_token","message":"not an auth token"}`, "copy the whole token", "client id"},
	} {
		d.set("POST /api/v1/auth/configure", `{"error":`+c.refusal+`}`)
		if code, _, errs := run(t, "", "login", "adit_x", "nas"); code != command.ExitFailed || !strings.Contains(errs, c.says) || strings.Contains(errs, c.not) {
			t.Errorf("got exit code %d and %q, want %q and not %q", code, errs, c.says, c.not)
		}
	}
}

// TestStatusSaysWhatIsToBeDone of a token that the relay does not take: a new one does
// not help where its client's time has ended.
func TestStatusSaysWhatIsToBeDone(t *testing.T) {
	d := newFakeDaemon(t)
	for reason, want := range map[string]string{
		"the relay revoked the token: the client was revoked; ask its operator for a new one":                    "Next       adit login TOKEN\n",
		"the relay refuses the token for now: the client's time ended on 2026-05-04 10:20 UTC; ask its operator": "Next       ask the relay's operator; adit keeps trying\n",
	} {
		d.set("GET /api/v1/status", `{"data":{"configured":true,"state":"rejected","last_error":"`+reason+`"}}`)
		if _, out, _ := run(t, "", "status"); !strings.HasSuffix(out, want) {
			t.Errorf("%s: got %q", reason, out)
		}
	}
}
