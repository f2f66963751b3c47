package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"adit/internal/openapicheck"
	"adit/localapi"
)

// contractClient asks one daemon and holds every answer against the document.
type contractClient struct {
	t        *testing.T
	document *openapicheck.Document
	base     string
	header   http.Header     // of every request
	codes    map[string]bool // the error codes that came
}

// ask sends one request; path is the document's, into which ids go in order.
// It returns the answer's body.
func (c *contractClient) ask(want, method, path, body string, more ...string) string {
	c.t.Helper()
	header := c.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	if body != "" {
		header.Set("Content-Type", "application/json")
	}
	target := path
	for _, m := range more {
		if name, value, ok := strings.Cut(m, ": "); ok {
			header.Set(name, value)
		} else if strings.HasPrefix(m, "?") {
			target += m
		} else {
			target = strings.Replace(target, "{id}", m, 1)
		}
	}
	resp, answer := send(c.t, method, c.base+target, body, header)
	status, code, _ := strings.Cut(want, " ")
	var refusal struct{ Error struct{ Code string } }
	if code != "" {
		if err := json.Unmarshal([]byte(answer), &refusal); err != nil {
			c.t.Errorf("%s %s: %v in %q", method, target, err, answer)
		}
		c.codes[refusal.Error.Code] = true
	}
	if strconv.Itoa(resp.StatusCode) != status || refusal.Error.Code != code {
		short := body[:min(len(body), 100)]
		c.t.Fatalf("%s %s %s: got %d %s, want %s", method, target, short, resp.StatusCode, answer, want)
	}
	c.document.Answer(c.t, path, method, resp, []byte(answer))
	return answer
}

// id returns the first id in an answer.
func (c *contractClient) id(answer string) string {
	c.t.Helper()
	_, rest, _ := strings.Cut(answer, `"id":"`)
	id, _, ok := strings.Cut(rest, `"`)
	if !ok {
		c.t.Fatalf("there is no id in %s", answer)
	}
	return id
}

// TestEveryPathAndCodeOfTheContract drives all of the document through the
// built program, with a relay behind it, and each code of the contract's table.
func TestEveryPathAndCodeOfTheContract(t *testing.T) {
	relay, gone := newRelay(t), newRelay(t)
	token, revoked, nowhere := relay.client("laptop"), relay.client("old"), gone.client("laptop")
	must(t, nil, "relay", "client", "revoke", "old", "--data_dir", relay.dir)
	gone.proc.kill()
	agent := newAgent(t)
	c := &contractClient{t: t, document: openapicheck.Load(t, localapi.OpenAPI()), base: "http://" + agent.listen, codes: map[string]bool{}}

	c.beforeTheToken(revoked)
	c.ask("200", "POST", "/api/v1/auth/configure", `{"auth_token":"`+token+`"}`)
	c.ask("200", "GET", "/api/v1/auth/status", "")
	agent.awaitConnected()
	events := c.follow(t.Context(), "")
	c.lifeOfATunnel(relay, newOrigin(t))
	c.everythingElse()
	agent.awaitConnected()
	c.refusals()
	c.wrongValues(newOrigin(t))
	c.tooManyStreams()
	c.whileAnotherChangeRuns(nowhere)
	agent.awaitConnected() // the token in force still is
	c.resumedEvents()
	c.ask("204", "DELETE", "/api/v1/auth", "")
	c.ask("204", "DELETE", "/api/v1/auth", "")
	if agent.status().Configured {
		t.Error("the daemon is configured after the token was forgotten")
	}
	if code := agent.proc.stop(); code != 0 {
		t.Errorf("the daemon ended with exit code %d", code)
	}
	c.wholeStream(events)
	c.withBearer()

	for _, answer := range c.document.Answers(t) {
		if !c.document.Seen[answer] && !elsewhere[answer] {
			t.Errorf("the document knows %s, which never came here", answer)
		}
	}
	for _, code := range []string{
		"invalid_json", "invalid_parameter", "invalid_token", "relay_rejected", "not_configured", "unauthorized",
		"forbidden_host", "forbidden_origin", "not_found", "method_not_allowed", "control_busy", "payload_too_large",
		"unsupported_media_type", "relay_unreachable",
	} {
		if !c.codes[code] {
			t.Errorf("the code %s never came", code)
		}
	}
}

func (c *contractClient) beforeTheToken(revoked string) {
	c.t.Helper()
	configure := "/api/v1/auth/configure"
	c.ask("400 not_configured", "POST", "/api/v1/tunnels", `{"local_port":1}`)
	for _, path := range []string{"/api/v1/pause", "/api/v1/resume", "/api/v1/reconnect", "/api/v1/speed"} {
		c.ask("400 not_configured", "POST", path, "")
	}
	c.ask("400 invalid_json", "POST", configure, `{`)
	c.ask("400 invalid_json", "POST", configure, strings.Repeat(`{"a":`, 100_000))
	c.ask("400 invalid_parameter", "POST", configure, `{"auth_token":"adit_x","relay":"evil.example:4433"}`)
	c.ask("400 invalid_token", "POST", configure, `{"auth_token":"adit_x"}`)
	c.ask("400 invalid_token", "POST", configure, `{"auth_token":"`+revoked+`"}`)
	c.ask("413 payload_too_large", "POST", configure, `{"auth_token":"`+strings.Repeat("a", 1<<20)+`"}`)
}

func (c *contractClient) lifeOfATunnel(relay *relay, port int) {
	c.t.Helper()
	all, one := "/api/v1/tunnels", "/api/v1/tunnels/{id}"
	body := fmt.Sprintf(`{"type":"http","mode":"standard","local_ip":"127.0.0.1","local_port":%d,"domain":"shop"}`, port)
	made := c.ask("201", "POST", all, body)
	id := c.id(made)
	c.ask("400 relay_rejected", "POST", all, body) // the name is taken
	c.ask("200", "GET", all, "")
	c.ask("200", "GET", one, "", id)
	c.ask("200", "GET", "/api/v1/endpoints", "")
	var tunnel struct{ Data tunnel }
	decode(c.t, made, &tunnel)
	await(c.t, "the visitor is answered", answers(relay.visitor(), tunnel.Data.PublicURL))

	policy := one + "/policy"
	c.ask("200", "GET", policy, "", id)
	c.ask("400 relay_rejected", "PUT", policy, `{"rate":50}`, id) // the operator has not let the client
	must(c.t, nil, "relay", "client", "set", "laptop", "--own_policies", "--data_dir", relay.dir)
	c.ask("200", "PUT", policy, `{"rate":50}`, id)
	c.ask("412 precondition_failed", "PUT", policy, `{}`, id, `If-Match: "another"`)
	c.ask("400", "PUT", policy, `{"deny":["x"]}`, id)

	requests := "/api/v1/requests"
	var request string
	await(c.t, "the inspector shows the request", func() error {
		list := c.ask("200", "GET", requests, "", "?status=2xx&limit=5")
		if !strings.Contains(list, `"id":"`) {
			return errorf("%s", list)
		}
		request = c.id(list)
		return nil
	})
	c.ask("200", "GET", requests+"/{id}", "", request)
	c.ask("200", "POST", requests+"/{id}/replay", `{"path":"/again"}`, request)
	c.ask("200", "GET", requests+".har", "")
	c.ask("200", "POST", requests+".har", `{"log":{"version":"1.2","creator":{},"entries":[]}}`)
	c.ask("204", "DELETE", requests, "")
	c.ask("404 not_found", "GET", requests+"/{id}", "", request)

	c.ask("200", "PATCH", one, `{"name":"till"}`, id)
	for _, verb := range []string{"/stop", "/stop", "/start", "/start"} {
		c.ask("200", "POST", one+verb, "", id)
	}
	c.ask("204", "DELETE", one, "", id)
	c.ask("404 not_found", "DELETE", one, "", id)
}

func (c *contractClient) everythingElse() {
	c.t.Helper()
	for _, path := range []string{"/healthz", "/metrics", "/api/v1/openapi.yaml", "/api/v1/status", "/api/v1/config", "/api/v1/logs", "/api/v1/visits", "/api/v1/invitations"} {
		c.ask("200", "GET", path, "")
	}
	c.ask("200", "HEAD", "/healthz", "")
	c.ask("200", "POST", "/api/v1/diagnostics", "")
	c.ask("201", "POST", "/api/v1/login-links", "")
	c.ask("204", "DELETE", "/api/v1/session", "")
	c.ask("200", "POST", "/api/v1/speed", "")
	c.twoMeasurements()
	c.ask("200", "POST", "/api/v1/pause", "")
	c.ask("503 relay_unreachable", "POST", "/api/v1/speed", "")
	c.ask("503 relay_unreachable", "GET", "/api/v1/invitations", "")
	c.ask("200", "POST", "/api/v1/resume", "")
	c.ask("200", "POST", "/api/v1/reconnect", "")
}

// twoMeasurements has the speed measured by two callers at once, of whom one is refused.
func (c *contractClient) twoMeasurements() {
	c.t.Helper()
	const path = "/api/v1/speed"
	await(c.t, "one of two measurements at once is refused", func() error {
		refused := errorf("both were made")
		var group sync.WaitGroup
		var mu sync.Mutex
		for range 2 {
			group.Go(func() {
				resp, err := plain.Post(c.base+path, "application/json", http.NoBody)
				if err != nil {
					c.t.Error(err)
					return
				}
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				mu.Lock()
				defer mu.Unlock()
				if err == nil && resp.StatusCode == http.StatusConflict {
					c.document.Answer(c.t, path, "POST", resp, body)
					refused = nil
				}
			})
		}
		group.Wait()
		return refused
	})
}

func (c *contractClient) refusals() {
	c.t.Helper()
	for _, operation := range c.document.Operations(c.t) {
		method, path, _ := strings.Cut(operation, " ")
		if method == "HEAD" {
			continue // its answer has no code
		}
		c.ask("403 forbidden_host", method, path, "", "x", "Host: evil.example")
		c.ask("403 forbidden_origin", method, path, "", "x", "Origin: https://evil.example")
		c.ask("405 method_not_allowed", "TRACE", path, "", "x")
		if strings.HasPrefix(path, "/api/v1/") && path != "/api/v1/openapi.yaml" {
			c.ask("400 invalid_parameter", method, path, "", "x", "?colour=red")
		}
	}
	c.ask("404 not_found", "GET", "/api/v1/nothing", "")
	c.ask("415 unsupported_media_type", "POST", "/api/v1/tunnels", `{"local_port":1}`, "Content-Type: text/plain")
	for _, body := range []string{
		`{"local_port":0}`, `{"local_port":1,"type":"ftp"}`, `{"local_port":1,"mode":"magic"}`, `{"local_port":1,"port":1}`,
		`{"local_port":80,"local_ip":"169.254.169.254"}`, `{"local_port":80,"local_ip":"fd00:ec2::254"}`,
		`{"local_port":` + c.base[strings.LastIndexByte(c.base, ':')+1:] + `}`,
	} {
		c.ask("400 invalid_parameter", "POST", "/api/v1/tunnels", body)
	}
	if list := c.ask("200", "GET", "/api/v1/tunnels", ""); !strings.Contains(list, `"items":[]`) {
		c.t.Errorf("a refused request left a tunnel: %s", list)
	}
}

// elsewhere are answers that take 15 s each to come, that last, or that want a
// file that declares tunnels; package localapi has them come from an agent of its own.
var elsewhere = map[string]bool{
	"POST /api/v1/tunnels 503": true, "PATCH /api/v1/tunnels/{id} 503": true, "DELETE /api/v1/tunnels/{id} 503": true,
	"POST /api/v1/tunnels/{id}/start 503": true, "POST /api/v1/tunnels/{id}/stop 503": true,
	"GET /api/v1/tunnels/{id}/policy 503": true, "PUT /api/v1/tunnels/{id}/policy 503": true,
	"POST /api/v1/tunnels/{id}/hold 200": true, "POST /api/v1/tunnels/{id}/hold 503": true,
	"GET /api/v1/visits/{client}/{name} 200": true, "POST /api/v1/visits/{client}/{name} 101": true,
	"GET /api/v1/visits/{client}/{name} 503": true, "POST /api/v1/visits/{client}/{name} 503": true,
}

// wrongValues asks for what is not there, and with what makes no sense.
func (c *contractClient) wrongValues(port int) {
	c.t.Helper()
	const text = "Content-Type: text/plain"
	large := `{"name":"` + strings.Repeat("a", 1<<20) + `"}`
	c.ask("403", "HEAD", "/healthz", "", "Host: evil.example")
	c.ask("415 unsupported_media_type", "POST", "/api/v1/auth/configure", `{}`, text)
	c.ask("413 payload_too_large", "POST", "/api/v1/tunnels", large)

	one := "/api/v1/tunnels/{id}"
	id := c.id(c.ask("201", "POST", "/api/v1/tunnels", fmt.Sprintf(`{"type":"http","local_port":%d}`, port)))
	c.ask("400 invalid_parameter", "PATCH", one, `{"local_port":0}`, id)
	c.ask("400 invalid_parameter", "PATCH", one, `{"colour":"red"}`, id)
	c.ask("413 payload_too_large", "PATCH", one, large, id)
	c.ask("415 unsupported_media_type", "PATCH", one, `{"name":"x"}`, id, text)
	c.ask("404 not_found", "GET", one+"/policy", "", "tun_x")
	c.ask("404 not_found", "PUT", one+"/policy", `{}`, "tun_x")
	c.ask("413 payload_too_large", "PUT", one+"/policy", large, id)
	c.ask("415 unsupported_media_type", "PUT", one+"/policy", `{}`, id, text)
	c.ask("204", "DELETE", one, "", id)
	c.ask("404 not_found", "GET", one, "", id)
	c.ask("404 not_found", "PATCH", one, `{"name":"x"}`, id)
	c.ask("404 not_found", "POST", one+"/hold", "", id)
	c.ask("404 not_found", "POST", one+"/start", "", id)
	c.ask("404 not_found", "POST", one+"/stop", "", id)

	request := "/api/v1/requests/{id}"
	c.ask("400 invalid_parameter", "GET", "/api/v1/requests", "", "?status=teapot")
	c.ask("400 invalid_parameter", "GET", request, "", "req_1", "?colour=red")
	c.ask("404 not_found", "POST", request+"/replay", `{}`, "req_999999")
	c.ask("400 invalid_json", "POST", request+"/replay", `{`, "req_1")
	c.ask("413 payload_too_large", "POST", request+"/replay", large, "req_1")
	c.ask("415 unsupported_media_type", "POST", request+"/replay", `{}`, "req_1", text)
	har := "/api/v1/requests.har"
	c.ask("400 invalid_parameter", "GET", har, "", "?colour=red")
	c.ask("400 invalid_json", "POST", har, `{`)
	c.ask("415 unsupported_media_type", "POST", har, `{}`, text)
	// More than is read only to be thrown away: who asks first need not send it.
	c.ask("413 payload_too_large", "POST", har, `{"log":"`+strings.Repeat("a", 40<<20)+`"}`, "Expect: 100-continue")
	c.ask("400 invalid_parameter", "GET", "/api/v1/logs", "", "?level=loud")
	session := "/api/v1/session"
	c.ask("400 invalid_json", "POST", session, `{`)
	c.ask("413 payload_too_large", "POST", session, large)
	c.ask("415 unsupported_media_type", "POST", session, `{}`, text)
}

// whileAnotherChangeRuns tries a token of a relay that does not answer, which
// takes its time; meanwhile no other change is taken.
func (c *contractClient) whileAnotherChangeRuns(nowhere string) {
	c.t.Helper()
	type outcome struct {
		resp *http.Response
		body []byte
		err  error
	}
	ended := make(chan outcome, 1)
	go func() {
		for {
			var o outcome
			o.resp, o.err = plain.Post(c.base+"/api/v1/auth/configure", "application/json", strings.NewReader(`{"auth_token":"`+nowhere+`"}`))
			if o.err == nil {
				o.body, o.err = io.ReadAll(o.resp.Body)
				o.resp.Body.Close()
			}
			if o.err != nil || o.resp.StatusCode != 409 { // else it came while one of those below was looked at
				ended <- o
				return
			}
		}
	}()
	await(c.t, "a change is refused while another runs", func() error {
		resp, body := send(c.t, "POST", c.base+"/api/v1/tunnels/x/stop", "", nil)
		if resp.StatusCode != 409 {
			return errorf("got %d %s", resp.StatusCode, body)
		}
		c.document.Answer(c.t, "/api/v1/tunnels/{id}/stop", "POST", resp, []byte(body))
		c.codes["control_busy"] = true
		return nil
	})
	// The other one takes 15 s: all of these find it at work.
	c.ask("409 control_busy", "POST", "/api/v1/auth/configure", `{"auth_token":"`+nowhere+`"}`)
	c.ask("409 control_busy", "DELETE", "/api/v1/auth", "")
	c.ask("409 control_busy", "POST", "/api/v1/tunnels", `{"local_port":1}`)
	c.ask("409 control_busy", "PATCH", "/api/v1/tunnels/{id}", `{"name":"x"}`, "x")
	c.ask("409 control_busy", "PUT", "/api/v1/tunnels/{id}/policy", `{}`, "x")
	c.ask("409 control_busy", "DELETE", "/api/v1/tunnels/{id}", "", "x")
	c.ask("409 control_busy", "POST", "/api/v1/tunnels/{id}/start", "", "x")
	o := <-ended
	if o.err != nil {
		c.t.Fatal(o.err)
	}
	if o.resp.StatusCode != 503 || !strings.Contains(string(o.body), `"relay_unreachable"`) || o.resp.Header.Get("Retry-After") == "" {
		c.t.Fatalf("a relay that is gone: got %d %s, headers %v", o.resp.StatusCode, o.body, o.resp.Header)
	}
	c.document.Answer(c.t, "/api/v1/auth/configure", "POST", o.resp, o.body)
	c.codes["relay_unreachable"] = true
}

// withBearer has every path refuse a stranger, and lets a browser sign in.
func (c *contractClient) withBearer() {
	c.t.Helper()
	agent := newAgentWith(c.t, "[local_api]\nbearer_token = \""+bearerToken+"\"\n")
	c.base = "http://" + agent.listen
	for _, operation := range c.document.Operations(c.t) {
		method, path, _ := strings.Cut(operation, " ")
		switch {
		case path == "/healthz":
			c.ask("200", method, path, "")
		case operation == "POST /api/v1/session":
			c.ask("401 unauthorized", method, path, `{"code":"nonsense"}`)
		default:
			c.ask("401 unauthorized", method, path, "", "x")
			c.ask("401 unauthorized", method, path, "", "x", "Authorization: Bearer wrong")
		}
	}
	answer := c.ask("201", "POST", "/api/v1/login-links", "", "Authorization: Bearer "+bearerToken)
	var link struct{ Data struct{ URL string } }
	decode(c.t, answer, &link)
	_, code, _ := strings.Cut(link.Data.URL, "#")
	resp, body := send(c.t, "POST", c.base+"/api/v1/session", `{"code":"`+code+`"}`, http.Header{"Content-Type": {"application/json"}})
	c.document.Answer(c.t, "/api/v1/session", "POST", resp, []byte(body))
	if len(resp.Cookies()) != 1 {
		c.t.Fatalf("signing in: got %d %s, cookies %v", resp.StatusCode, body, resp.Cookies())
	}
	cookie := resp.Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode {
		c.t.Errorf("the cookie is %v", cookie)
	}
	c.ask("401 unauthorized", "POST", "/api/v1/session", `{"code":"`+code+`"}`) // once only
	c.ask("200", "GET", "/api/v1/status", "", "Cookie: "+cookie.Name+"="+cookie.Value)
	c.ask("401 unauthorized", "GET", "/api/v1/status", "", "Cookie: "+cookie.Name+"=x"+cookie.Value)
}
