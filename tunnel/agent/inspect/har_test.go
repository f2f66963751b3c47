package inspect

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestHARGoesOutAndComesIn(t *testing.T) {
	visitor := "POST /a?x=1&y=%20 HTTP/1.1\r\nHost: shop.example.com\r\nX-Forwarded-Proto: https\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nabc"
	origin := "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 3\r\n\r\n\x89\x00\xff"
	ins, _ := hear(t, Limits{}, 4, visitor, origin)
	var out bytes.Buffer
	if err := ins.WriteHAR(&out, Filter{}, "1.0", true); err != nil {
		t.Fatal(err)
	}
	var doc har
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	e := doc.Log.Entries[0]
	if doc.Log.Version != "1.2" || e.Request.URL != "https://shop.example.com/a?x=1&y=%20" || e.Request.PostData.Text != "abc" ||
		e.Response.Content.Encoding != "base64" || len(e.Request.QueryString) != 2 || e.Request.QueryString[1].Value != " " {
		t.Errorf("got %+v", e)
	}
	var flows bytes.Buffer
	if err := ins.WriteHAR(&flows, Filter{Kind: KindFlow}, "1.0", true); err != nil || strings.Contains(flows.String(), "shop.example.com") {
		t.Errorf("an archive of flows: %v\n%s", err, flows.String())
	}
	other := New(Limits{})
	n, err := other.ReadHAR(&out)
	if err != nil || n != 1 {
		t.Fatalf("got %d, %v", n, err)
	}
	got := other.List(Filter{})[0]
	if !got.Imported || got.Method != http.MethodPost || got.Status != 200 || got.Host != "shop.example.com" {
		t.Errorf("got %+v", got)
	}
	again, err := other.Repeat(got.ID, Edit{})
	if err != nil || !bytes.HasPrefix(again.Bytes, []byte("POST /a?x=1&y=%20 HTTP/1.1\r\nHost: shop.example.com\r\n")) || !bytes.HasSuffix(again.Bytes, []byte("\r\n\r\nabc")) {
		t.Errorf("got %q, %v", again.Bytes, err)
	}
	for _, bad := range []string{"", "[]", "{}", `{"log":{"version":"1.2","entries":[{"request":{"method":"G T","url":"http://a/"}}]}}`} {
		if _, err := other.ReadHAR(strings.NewReader(bad)); err == nil {
			t.Errorf("%q: got no error", bad)
		}
	}
}

// TestArchiveTellsOfACutBody: whoever reads it takes the beginning for the whole
// otherwise, and so does who replays it.
func TestArchiveTellsOfACutBody(t *testing.T) {
	head := "POST /a HTTP/1.1\r\nHost: a.test\r\nContent-Type: a/b\r\nContent-Length: 8\r\n\r\n"
	for name, c := range map[string]struct {
		limits            Limits
		visitor, origin   string
		request, response string // the comments
	}{
		"all of it":       {Limits{}, head + "one, two", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd", "", ""},
		"too large":       {Limits{Body: 3}, head + "one, two", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd", cutBody, cutBody},
		"cut off":         {Limits{}, head + "one,", "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", cutBody, ""},
		"not begun":       {Limits{}, head, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", cutBody, ""},
		"without a body":  {Limits{}, getA, "HTTP/1.1 204 No Content\r\n\r\n", "", ""},
		"another's bytes": {Limits{}, "GET /ws HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\nxyz", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\nabc", "", ""},
	} {
		ins, _ := hear(t, c.limits, 1<<20, c.visitor, c.origin)
		for turn := range 2 { // as it was, and imported
			var out bytes.Buffer
			if err := ins.WriteHAR(&out, Filter{}, "1.0", true); err != nil {
				t.Fatal(err)
			}
			var doc har
			if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
				t.Fatal(err)
			}
			e, request := doc.Log.Entries[0], ""
			if e.Request.PostData != nil {
				request = e.Request.PostData.Comment
			}
			if response := e.Response.Content.Comment; request != c.request || response != c.response {
				t.Errorf("%s, turn %d: got %q and %q, want %q and %q", name, turn, request, response, c.request, c.response)
			}
			_, err := ins.Repeat(ins.List(Filter{})[0].ID, Edit{})
			if got, want := errors.Is(err, ErrCut), c.request != ""; got != want {
				t.Errorf("%s, turn %d: replayed: got %v", name, turn, err)
			}
			ins = New(Limits{})
			if _, err := ins.ReadHAR(&out); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestArchiveHasRequestsAlone: of a visitor whom the service did not take, nothing may
// have been heard, and who reads archives wants a URL of each entry.
func TestArchiveHasRequestsAlone(t *testing.T) {
	ins, _ := hear(t, Limits{}, 1<<20, getA, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	ins.HTTP2(Meta{Type: "https"}).Refuse(502, "nothing listens at the local address 127.0.0.1:9")
	ins.HTTP(Meta{Type: "https"}).Refuse(0, "nothing listens at the local address 127.0.0.1:9")
	ins.listAll()
	var out bytes.Buffer
	if err := ins.WriteHAR(&out, Filter{}, "1.0", false); err != nil {
		t.Fatal(err)
	}
	if n, err := New(Limits{}).ReadHAR(&out); err != nil || n != 1 {
		t.Errorf("got %d entries back, %v, want the request", n, err)
	}
}

// TestARequestOfTheWholeServerHasItsURL: OPTIONS * asks for no path (RFC 9112, section
// 3.2.4), and with the star behind the port its URL would be none.
func TestARequestOfTheWholeServerHasItsURL(t *testing.T) {
	ins, list := hear(t, Limits{}, 1<<20, "OPTIONS * HTTP/1.1\r\nHost: a.test:8080\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n")
	d, _ := ins.Detail(list[0].ID, false)
	want := "curl --request 'OPTIONS' \\\n  --request-target '*' \\\n  'http://a.test:8080'"
	if d.Path != "*" || d.URL != "http://a.test:8080" || d.Curl != want {
		t.Errorf("got %s of %s by\n%s\nwant\n%s", d.Path, d.URL, d.Curl, want)
	}
	var out bytes.Buffer
	if err := ins.WriteHAR(&out, Filter{}, "1.0", false); err != nil {
		t.Fatal(err)
	}
	if n, err := New(Limits{}).ReadHAR(&out); err != nil || n != 1 {
		t.Errorf("got %d entries back, %v, want the request", n, err)
	}
}

// TestArchiveIsTakenInAsAWholeOrNotAtAll, so that who mends it and tries again has
// nothing twice.
func TestArchiveIsTakenInAsAWholeOrNotAtAll(t *testing.T) {
	ins := New(Limits{})
	text := `{"log":{"version":"1.2","entries":[{"request":{"method":"GET","url":"http://a/"}},{"request":{"method":"GET","url":"about:blank"}}]}}`
	if _, err := ins.ReadHAR(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "entry 1") {
		t.Errorf("got %v, want the entry at fault", err)
	}
	if got := ins.List(Filter{}); len(got) > 0 {
		t.Errorf("got %s, want nothing", brief(got))
	}
}

// TestImportKeepsTheVersionOfHTTP has the names that adit and browsers write.
func TestImportKeepsTheVersionOfHTTP(t *testing.T) {
	for _, c := range []struct {
		request, response string
		want, answered    string
		http2             bool
	}{
		{"HTTP/2.0", "HTTP/2.0", "HTTP/2.0", "HTTP/2.0", true},
		{"h2", "h2", "HTTP/2.0", "HTTP/2.0", true},
		{"HTTP/2", "", "HTTP/2.0", "HTTP/2.0", true},
		{"h3", "h3", "HTTP/3.0", "HTTP/3.0", true},
		{"HTTP/1.0", "HTTP/1.1", "HTTP/1.0", "HTTP/1.1", false},
		{"http/1.1", "http/1.1", "HTTP/1.1", "HTTP/1.1", false},
		{"unknown", "x y\r\nz", "HTTP/1.1", "HTTP/1.1", false},
		{"", "", "HTTP/1.1", "HTTP/1.1", false},
	} {
		text, err := json.Marshal(map[string]any{"log": map[string]any{"version": "1.2", "entries": []any{map[string]any{
			"startedDateTime": "2026-01-02T03:04:05Z",
			"request":         map[string]any{"method": "POST", "url": "https://shop.example.com/a", "httpVersion": c.request},
			"response":        map[string]any{"status": 200, "httpVersion": c.response},
		}}}})
		if err != nil {
			t.Fatal(err)
		}
		ins := New(Limits{})
		if _, err := ins.ReadHAR(bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		id := ins.List(Filter{})[0].ID
		d, _ := ins.Detail(id, false)
		again, err := ins.Repeat(id, Edit{})
		if err != nil || d.Request.Proto != c.want || d.Response.Proto != c.answered || again.HTTP2 != c.http2 {
			t.Errorf("%q, %q: got %s, %s, HTTP/2 %t, %v", c.request, c.response, d.Request.Proto, d.Response.Proto, again.HTTP2, err)
		}
	}
}

func TestWhatIsNoHARIsRefusedInWordsOfTheFile(t *testing.T) {
	for text, want := range map[string]string{
		`{`:         "not a HAR file: it is no JSON of that form",
		`[]`:        "not a HAR file: it is no JSON of that form",
		`{"log":5}`: "not a HAR file: its log is a number",
		`{"log":{"version":"1.2","entries":[{"request":"GET"}]}}`: "not a HAR file: its log.entries.request is a string",
		`{"log":{}}`: "not a HAR file: it names no version, or has more than 10000 entries",
	} {
		_, err := New(Limits{}).ReadHAR(strings.NewReader(text))
		if err == nil || !errors.Is(err, ErrHAR) || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestRepeatRefusesWhatIsNoRequest(t *testing.T) {
	ins, list := hear(t, Limits{Body: 2}, 1<<20, "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	id := list[0].ID
	if _, err := ins.Repeat(id, Edit{}); err != ErrCut {
		t.Errorf("got %v, want ErrCut", err)
	}
	body := "new"
	if again, err := ins.Repeat(id, Edit{Body: &body}); err != nil || !bytes.HasSuffix(again.Bytes, []byte("Content-Length: 3\r\nConnection: close\r\n\r\nnew")) {
		t.Errorf("got %q, %v", again.Bytes, err)
	}
	for _, edit := range []Edit{
		{Body: &body, BodyBase64: &body},
		{Body: &body, Method: "A B"},
		{Body: &body, Path: "/a b"},
		{Body: &body, Path: "/a\r\nX: y"},
		{Body: &body, Path: "http://elsewhere/"},
		{Body: &body, Headers: []Header{{Name: "a b"}}},
		{Body: &body, Headers: []Header{{Name: "a", Value: "b\r\nc: d"}}},
	} {
		if again, err := ins.Repeat(id, edit); err == nil {
			t.Errorf("%+v: got %q, want an error", edit, again.Bytes)
		}
	}
}

func TestCurlIsOneSafeCommand(t *testing.T) {
	visitor := "POST /it's?a=b HTTP/1.1\r\nHost: shop.example.com\r\nX-Forwarded-Proto: https\r\nX-A: $(reboot)'\r\nContent-Type: a/b\r\nContent-Length: 4\r\n\r\n'; x"
	ins, list := hear(t, Limits{}, 1<<20, visitor, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	d, _ := ins.Detail(list[0].ID, false)
	want := "curl --request 'POST' \\\n  --header 'X-A: $(reboot)'\\''' \\\n  --header 'Content-Type: a/b' \\\n  --data-raw ''\\''; x' \\\n  'https://shop.example.com/it'\\''s?a=b'"
	if d.Curl != want {
		t.Errorf("got\n%s\nwant\n%s", d.Curl, want)
	}
}

// TestCurlAsksForTheVeryURL: curl reads brackets and braces in a URL as lists, and
// takes steps up out of a path, unless it is told not to.
func TestCurlAsksForTheVeryURL(t *testing.T) {
	for target, flags := range map[string]string{
		"/a?b=c":             "",
		"/v1.2/.well-known":  "",
		"/a?up=/../b":        "",
		"/a?ids[]=1&ids[]=2": " --globoff",
		`/a?q={"b":1}`:       " --globoff",
		"/a/../b":            " --path-as-is",
		"/a/.":               " --path-as-is",
		"/./a[1]":            " --globoff --path-as-is",
	} {
		ins, list := hear(t, Limits{}, 1<<20, "GET "+target+" HTTP/1.1\r\nHost: a.test\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		d, _ := ins.Detail(list[0].ID, false)
		if want := "curl" + flags + " \\\n  'http://a.test" + target + "'"; d.Curl != want {
			t.Errorf("got\n%s\nwant\n%s", d.Curl, want)
		}
	}
}

// TestCurlSendsTheVeryFields: it leaves out one that is empty, and says that a body is a
// form's, unless it is told otherwise.
func TestCurlSendsTheVeryFields(t *testing.T) {
	for fields, want := range map[string]string{
		"X-Empty:\r\nContent-Type: text/plain\r\n": "  --header 'X-Empty;' \\\n  --header 'Content-Type: text/plain' \\\n",
		"": "  --header 'Content-Type:' \\\n",
	} {
		ins, list := hear(t, Limits{}, 1<<20, "POST /a HTTP/1.1\r\nHost: a.test\r\n"+fields+"Content-Length: 1\r\n\r\nx", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		d, _ := ins.Detail(list[0].ID, false)
		if want := "curl --request 'POST' \\\n" + want + "  --data-raw 'x' \\\n  'http://a.test/a'"; d.Curl != want {
			t.Errorf("got\n%s\nwant\n%s", d.Curl, want)
		}
	}
}

// TestCurlIsNoRoundOfALoop: with the relay's own mark it would be counted as one, and
// refused after some that were copied from each other.
func TestCurlIsNoRoundOfALoop(t *testing.T) {
	ins, list := hear(t, Limits{}, 1<<20, "GET /a HTTP/1.1\r\nHost: a.test\r\nCdn-Loop: relay.test\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n")
	d, _ := ins.Detail(list[0].ID, true)
	if want := "curl \\\n  'http://a.test/a'"; d.Curl != want {
		t.Errorf("got\n%s\nwant\n%s", d.Curl, want)
	}
}

// TestCurlSendsNoPartOfABody: what was not kept to its end is left to the person, and
// no service is sent the beginning of it as if that were all.
func TestCurlSendsNoPartOfABody(t *testing.T) {
	head := "POST /a HTTP/1.1\r\nHost: a.test\r\nContent-Type: a/b\r\nContent-Length: 8\r\n\r\n"
	answer := "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	for name, c := range map[string]struct {
		limits          Limits
		visitor, origin string
		data            string
	}{
		"all of it": {Limits{}, head + "one, two", answer, "--data-raw 'one, two'"},
		"too large": {Limits{Body: 3}, head + "one, two", answer, "--data-binary @body.bin"},
		"cut off":   {Limits{}, head + "one,", "", "--data-binary @body.bin"},
		"not begun": {Limits{}, head, "", "--data-binary @body.bin"},
	} {
		ins, list := hear(t, c.limits, 1<<20, c.visitor, c.origin)
		d, _ := ins.Detail(list[0].ID, false)
		if want := "curl --request 'POST' \\\n  --header 'Content-Type: a/b' \\\n  " + c.data + " \\\n  'http://a.test/a'"; d.Curl != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, d.Curl, want)
		}
	}
}

// TestCurlDoesNotSteerATerminal: what it is printed to obeys none of what a
// visitor sent.
func TestCurlDoesNotSteerATerminal(t *testing.T) {
	visitor := "POST /a HTTP/1.1\r\nHost: shop.example.com\r\nX-A: \x1b]0;mine\a\r\nX-B: a\u202eb\r\nContent-Type: a/b\r\nContent-Length: 9\r\n\r\n\x1b[2Jhello"
	ins, list := hear(t, Limits{}, 1<<20, visitor, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	d, _ := ins.Detail(list[0].ID, true)
	want := "curl --request 'POST' \\\n  --header 'Content-Type: a/b' \\\n  --data-binary @body.bin \\\n  'http://shop.example.com/a'"
	if d.Curl != want {
		t.Errorf("got\n%q\nwant\n%q", d.Curl, want)
	}
}

func TestImportedTimesCanBeTold(t *testing.T) {
	for _, start := range []string{"9999-12-31T23:59:59-23:00", "0000-01-01T00:00:00+23:00"} {
		ins := New(Limits{})
		text := `{"log":{"version":"1.2","entries":[{"startedDateTime":"` + start + `","request":{"method":"GET","url":"http://a/"}}]}}`
		if _, err := ins.ReadHAR(strings.NewReader(text)); !errors.Is(err, ErrHAR) {
			t.Errorf("%s: got %v, want ErrHAR", start, err)
		}
		if _, err := json.Marshal(ins.List(Filter{})); err != nil {
			t.Errorf("%s: what was taken in cannot be listed: %v", start, err)
		}
	}
}

// largest remembers the largest write.
type largest int

func (l *largest) Write(b []byte) (int, error) {
	*l = max(*l, largest(len(b)))
	return len(b), nil
}

// A body of a few kilobytes can say megabytes, in each of thousands of entries.
func TestArchiveIsWrittenEntryByEntry(t *testing.T) {
	var small bytes.Buffer
	z := gzip.NewWriter(&small)
	z.Write(bytes.Repeat([]byte{'a'}, maxDecoded))
	z.Close()
	answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", small.Len(), small.Bytes())
	const entries = 5
	ins, _ := hear(t, Limits{}, 1<<20, strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", entries), strings.Repeat(answer, entries))
	var out largest
	if err := ins.WriteHAR(&out, Filter{}, "1.0", false); err != nil {
		t.Fatal(err)
	}
	if out < maxDecoded || out > 2*maxDecoded {
		t.Errorf("the largest write has %d bytes, want one entry's", out)
	}
}

func TestArchiveTellsTheSizeOfWhatWasDecompressed(t *testing.T) {
	for _, plain := range []string{"\x00", "\x00\x01", "\x00\x01\x02", "\x00\x01\x02\x03", "text"} {
		var small bytes.Buffer
		z := gzip.NewWriter(&small)
		z.Write([]byte(plain))
		z.Close()
		answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", small.Len(), small.Bytes())
		ins, _ := hear(t, Limits{}, 1<<20, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", answer)
		var out bytes.Buffer
		var doc har
		if err := ins.WriteHAR(&out, Filter{}, "1.0", false); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		if got := doc.Log.Entries[0].Response.Content; got.Size != int64(len(plain)) || got.Compression != got.Size-int64(small.Len()) {
			t.Errorf("%q: got a size of %d, compressed by %d", plain, got.Size, got.Compression)
		}
	}
}
