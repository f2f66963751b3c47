package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestHeaderChangesAreComparedByWhatTheyDo(t *testing.T) {
	var a, b HeaderChanges
	for text, into := range map[string]*HeaderChanges{
		`{"x-env": "<a>&\"b\"", "Server": ""}`:              &a,
		`{"SERVER" : null , "X-Env":"\u003ca>&\"\u0062\""}`: &b,
	} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	c := ChangeHeaders(map[string]string{"X-Env": `<a>&"b"`, "server": ""})
	if a != b || a != c || a.IsZero() || a == (HeaderChanges{}) {
		t.Errorf("got %#v, %#v, %#v", a, b, c)
	}
	var got []string
	for name, value := range a.All() {
		got = append(got, name+"="+value)
	}
	if text := strings.Join(got, " "); text != `Server= X-Env=<a>&"b"` {
		t.Errorf("got %s", text)
	}
	if err := errors.Join(a.Check(Requests), a.Check(Responses)); err != nil {
		t.Error(err)
	}
	if err := json.Unmarshal([]byte(`{}`), &a); err != nil || !a.IsZero() {
		t.Errorf("an empty object: got %#v, %v", a, err)
	}
}

// TestClaimsStayAsTheyAre pins the form of a claim: an older relay must read what a newer
// agent writes.
func TestClaimsStayAsTheyAre(t *testing.T) {
	for want, c := range map[string]Claim{
		`{"type":"tcp","mode":"standard"}`: {Type: TypeTCP, Mode: ModeStandard},
		`{"type":"http","mode":"balanced","domain":"shop","host_header":"a","request_headers":{"X-Env":"prod","X-Old":""},"response_headers":{"Server":""}}`: {
			Type: TypeHTTP, Mode: ModeBalanced, Domain: "shop", HostHeader: "a",
			RequestHeaders: ChangeHeaders(map[string]string{"x-env": "prod", "X-Old": ""}), ResponseHeaders: ChangeHeaders(map[string]string{"Server": ""}),
		},
	} {
		got, err := json.Marshal(c)
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
		var back Claim
		if err := json.Unmarshal(got, &back); err != nil || !back.Equal(c) {
			t.Errorf("read back: got %+v, %v", back, err)
		}
	}
}

func TestHeadersThatCannotBeChanged(t *testing.T) {
	many := map[string]string{}
	for i := range MaxHeaders + 1 {
		many[fmt.Sprintf("X-%d", i)] = "v"
	}
	const connection = "cannot be changed: it belongs to the connection, or the relay sets it"
	type both struct{ request, response string } // what is said; empty: it may
	for name, want := range map[string]both{
		"X-Api-Key": {}, "Authorization": {}, "Cookie": {}, "Content-Type": {}, "X_Env": {}, "User-Agent": {},
		"Set-Cookie": {}, "Strict-Transport-Security": {}, "Access-Control-Allow-Origin": {}, "Server": {},
		"host":                     {"Host is not changed here; use host_header", ""},
		"content-length":           {"Content-Length " + connection, "Content-Length " + connection},
		"Content_Length":           {"Content_length " + connection, "Content_length " + connection},
		"Transfer-Encoding":        {"Transfer-Encoding " + connection, "Transfer-Encoding " + connection},
		"Trailer":                  {"Trailer " + connection, "Trailer " + connection},
		"TE":                       {"Te " + connection, "Te " + connection},
		"Connection":               {"Connection " + connection, "Connection " + connection},
		"Keep-Alive":               {"Keep-Alive " + connection, "Keep-Alive " + connection},
		"Upgrade":                  {"Upgrade " + connection, "Upgrade " + connection},
		"Proxy-Authorization":      {"Proxy-Authorization " + connection, "Proxy-Authorization " + connection},
		"Sec-WebSocket-Key":        {"Sec-Websocket-Key " + connection, "Sec-Websocket-Key " + connection},
		"Expect":                   {"Expect " + connection, ""},
		"Forwarded":                {"Forwarded " + connection, ""},
		"CDN-Loop":                 {"Cdn-Loop " + connection, ""},
		"X-Forwarded-For":          {"X-Forwarded-For " + connection, ""},
		"X-Forwarded-Anything":     {"X-Forwarded-Anything " + connection, ""},
		"x_forwarded_for":          {"X_forwarded_for " + connection, ""},
		"X-Real-IP":                {"X-Real-Ip " + connection, ""},
		"Proxy":                    {"Proxy " + connection, ""},
		"Alt-Svc":                  {"", "Alt-Svc " + connection},
		"Date":                     {"", "Date " + connection},
		"":                         {`"" is not the name of a header field`, `"" is not the name of a header field`},
		"X Env":                    {`"X Env" is not the name of a header field`, `"X Env" is not the name of a header field`},
		"X-Env:":                   {`"X-Env:" is not the name of a header field`, `"X-Env:" is not the name of a header field`},
		":path":                    {`":path" is not the name of a header field`, `":path" is not the name of a header field`},
		"X-Env\r\nEvil":            {`"X-Env\r\nEvil" is not the name of a header field`, `"X-Env\r\nEvil" is not the name of a header field`},
		"Ünv":                      {`"Ünv" is not the name of a header field`, `"Ünv" is not the name of a header field`},
		strings.Repeat("x y", 100): {`"` + strings.Repeat("x y", 21) + `x…" is not the name of a header field`, `"` + strings.Repeat("x y", 21) + `x…" is not the name of a header field`},
	} {
		for _, value := range []string{"v", ""} {
			c := ChangeHeaders(map[string]string{name: value})
			for d, want := range map[Direction]string{Requests: want.request, Responses: want.response} {
				if err := c.Check(d); (err == nil) != (want == "") || err != nil && err.Error() != want {
					t.Errorf("%q, direction %d: got %v, want %q", name, d, err, want)
				}
			}
		}
	}
	for want, c := range map[string]HeaderChanges{
		"the value of X-Env has control characters":              ChangeHeaders(map[string]string{"X-Env": "a\r\nX-Evil: b"}),
		"the value of X-One has control characters":              ChangeHeaders(map[string]string{"X-One": "a\x00"}),
		"the value of X-Two has control characters":              ChangeHeaders(map[string]string{"X-Two": "a\x7f"}),
		"the value of X-Env begins or ends with white space":     ChangeHeaders(map[string]string{"X-Env": " a"}),
		"the value of X-End begins or ends with white space":     ChangeHeaders(map[string]string{"X-End": "\t"}),
		"X-Env is given twice":                                   ChangeHeaders(map[string]string{"X-Env": "a", "x-env": "a"}),
		"there must be at most 32 fields":                        ChangeHeaders(many),
		"names and values must have at most 8192 bytes together": ChangeHeaders(map[string]string{"X-Env": strings.Repeat("x", MaxHeaderBytes-4)}),
	} {
		if err := c.Check(Requests); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	var twice HeaderChanges
	if err := json.Unmarshal([]byte(`{"X-Env":"a","X-Env":"b"}`), &twice); err != nil || twice.Check(Requests) == nil {
		t.Errorf("a name that is given twice passes: %v, %v", twice, err)
	}
}

func TestHeaderChangesOfAnotherKind(t *testing.T) {
	for text, want := range map[string][2]string{
		`[]`: {"array", ""}, `"X: y"`: {"string", ""}, `1`: {"number", ""}, `true`: {"bool", ""},
		`{"X-Env":["a"]}`: {"array", "X-Env"}, `{"X-Env":{}}`: {"object", "X-Env"}, `{"X-Env":1}`: {"number", "X-Env"},
	} {
		var c HeaderChanges
		var mismatch *json.UnmarshalTypeError
		if err := json.Unmarshal([]byte(text), &c); !errors.As(err, &mismatch) || mismatch.Value != want[0] || mismatch.Field != want[1] {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// TestHeaderValuesAreNotPrinted matters because the values may be secrets.
func TestHeaderValuesAreNotPrinted(t *testing.T) {
	c := Claim{RequestHeaders: ChangeHeaders(map[string]string{"Authorization": "Bearer secret", "X-Old": ""})}
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%+v", c), fmt.Sprint(&c), c.RequestHeaders.LogValue().String()} {
		if strings.Contains(text, "secret") || !strings.Contains(text, "Authorization, X-Old") {
			t.Errorf("got %s", text)
		}
	}
}

func FuzzHeaderChanges(f *testing.F) {
	for _, seed := range []string{`{}`, `{"X-Env":"prod","Server":null}`, `{"a":"","A":""}`, `{"X":"\r\n"}`, `{"X":"\ud800<"}`, `null`, `[`, `{"X":1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var c, again HeaderChanges
		if json.Unmarshal(b, &c) != nil {
			return
		}
		text, err := json.Marshal(c)
		if err == nil {
			err = json.Unmarshal(text, &again)
		}
		if err != nil || again != c {
			t.Fatalf("%q became %q, then %#v, %v", b, text, again, err)
		}
		for _, d := range []Direction{Requests, Responses} {
			if c.Check(d) != nil {
				continue
			}
			for name, value := range c.All() {
				if name == "" || strings.ContainsAny(name, ": \t\r\n\x00") || strings.ContainsAny(value, "\r\n\x00") {
					t.Fatalf("%q passes with %q: %q", b, name, value)
				}
			}
		}
	})
}
