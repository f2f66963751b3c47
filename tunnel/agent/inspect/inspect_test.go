package inspect

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// hear feeds a whole conversation to a tap in pieces of the given size and
// returns what is listed then, oldest first.
func hear(t *testing.T, limits Limits, piece int, visitor, origin string) (*Inspector, []Summary) {
	t.Helper()
	ins := New(limits)
	tap := ins.HTTP(Meta{TunnelID: "tun_1", TunnelName: "shop", Type: "http", Visitor: "192.0.2.7:4711"})
	feed := func(to func([]byte), text string) {
		for len(text) > 0 {
			n := min(piece, len(text))
			buf := []byte(text[:n])
			to(buf)
			for i := range buf { // the tap must not keep what it is shown
				buf[i] = 'X'
			}
			text = text[n:]
		}
	}
	feed(tap.FromVisitor, visitor)
	feed(tap.FromOrigin, origin)
	tap.VisitorEnded()
	tap.OriginEnded()
	tap.Close()
	ins.listAll()
	list := ins.List(Filter{Limit: 1000})
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return ins, list
}

func brief(list []Summary) string {
	var out []string
	for _, s := range list {
		out = append(out, fmt.Sprintf("%s %s %d %s", s.Method, s.Path, s.Status, s.State))
	}
	return strings.Join(out, ", ")
}

const getA = "GET /a HTTP/1.1\r\nHost: shop.example.com\r\nX-Forwarded-For: 198.51.100.9\r\nX-Forwarded-Proto: https\r\n\r\n"

func TestMessagesAreFoundHoweverTheyAreCut(t *testing.T) {
	tests := []struct {
		name, visitor, origin, want string
		request, response           string // bodies of the first
	}{
		{"plain", getA, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "GET /a 200 done", "", "hello"},
		{
			"chunked both ways",
			"POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\nTrailer: x\r\n\r\n",
			"HTTP/1.1 201 Created\r\ntransfer-encoding: gzip, chunked\r\n\r\n4\r\nwiki\r\n0\r\n\r\n",
			"POST /up 201 done", "abcde", "wiki",
		},
		{
			"pipelined", getA + "HEAD /b HTTP/1.1\r\nHost: a\r\n\r\n" + getA,
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n",
			"GET /a 200 done, HEAD /b 200 done, GET /a 304 done", "", "ok",
		},
		{
			"interim", "PUT /c HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
			"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
			"PUT /c 204 done", "abc", "",
		},
		{"until the end", getA, "HTTP/1.0 200 OK\r\n\r\nall of it", "GET /a 200 done", "", "all of it"},
		{"bare line feeds", "GET /lf HTTP/1.1\nHost: a\n\n", "HTTP/1.1 200 OK\nContent-Length: 1\n\nx", "GET /lf 200 done", "", "x"},
		{
			"websocket", "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
			"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n\x81\x05hello\r\n\r\n\x88\x00", "GET /ws 101 done", "", "",
		},
		{"cut in the body", getA, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", "GET /a 200 failed", "", "hello"},
		{"cut in the head", getA, "HTTP/1.1 200 OK\r\nConte", "GET /a 0 failed", "", ""},
		{"no answer", getA, "", "GET /a 0 failed", "", ""},
		{"no http", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 whatever this is", "\x15\x03\x01", "", "", ""},
		{"no http response", getA, "SSH-2.0-OpenSSH_9.6 and so on\r\n", "GET /a 0 failed", "", ""},
		{"two lengths", getA, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "GET /a 0 failed", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, piece := range []int{1, 2, 3, 7, 64, 1 << 20} {
				ins, list := hear(t, Limits{}, piece, test.visitor, test.origin)
				if got := brief(list); got != test.want {
					t.Errorf("pieces of %d: got %q, want %q", piece, got, test.want)
					continue
				}
				if len(list) == 0 {
					continue
				}
				d, ok := ins.Detail(list[0].ID, true)
				if !ok || d.Request.Body.Text != test.request {
					t.Errorf("pieces of %d: request body: got %q, want %q", piece, d.Request.Body.Text, test.request)
				}
				if test.response != "" && (d.Response == nil || d.Response.Body.Text != test.response) {
					t.Errorf("pieces of %d: response: got %+v, want body %q", piece, d.Response, test.response)
				}
			}
		})
	}
}

func TestUpgradedConnectionIsCounted(t *testing.T) {
	ins := New(Limits{})
	tap := ins.HTTP(Meta{})
	tap.FromVisitor([]byte("GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n"))
	tap.FromOrigin([]byte("HTTP/1.1 101 Switching Protocols\r\n\r\n"))
	ins.listAll()
	before := ins.List(Filter{})[0]
	tap.FromVisitor([]byte("POST / HTTP/1.1\r\n\r\n"))
	tap.FromOrigin(make([]byte, 100))
	after := ins.List(Filter{})[0]
	if before.State != "open" || after.BytesIn-before.BytesIn != 19 || after.BytesOut-before.BytesOut != 100 {
		t.Errorf("got %+v after %+v", after, before)
	}
	tap.Close()
	ins.listAll()
	if got := ins.List(Filter{}); len(got) != 1 || got[0].State != "done" {
		t.Errorf("got %+v, want one that is done", got)
	}
}

func TestBodiesAreKeptUpToTheBound(t *testing.T) {
	body := strings.Repeat("x", 5000)
	origin := "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + body + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	ins, list := hear(t, Limits{Body: 1000}, 333, getA+getA, origin)
	if brief(list) != "GET /a 200 done, GET /a 200 done" {
		t.Fatalf("got %s", brief(list))
	}
	d, _ := ins.Detail(list[0].ID, false)
	if len(d.Response.Body.Text) != 1000 || !d.Response.Body.Truncated || d.Response.Body.Size != 5000 {
		t.Errorf("got %d bytes, truncated %t, size %d", len(d.Response.Body.Text), d.Response.Body.Truncated, d.Response.Body.Size)
	}
	d, _ = ins.Detail(list[1].ID, false)
	if d.Response.Body.Text != "ok" || d.Response.Body.Truncated {
		t.Errorf("second: got %+v", d.Response.Body)
	}
}

func TestMemoryAndEntriesAreBounded(t *testing.T) {
	ins := New(Limits{Memory: 400 << 10, Body: 40 << 10, Entries: 20})
	body := strings.Repeat("x", 40<<10)
	for range 50 {
		tap := ins.HTTP(Meta{})
		tap.FromVisitor([]byte(getA))
		tap.FromOrigin([]byte("HTTP/1.1 200 OK\r\nContent-Length: 40960\r\n\r\n" + body))
		tap.Close()
		ins.listAll()
		if used := ins.used.Load(); used > 400<<10 {
			t.Fatalf("got %d bytes held, want at most %d", used, 400<<10)
		}
	}
	if n := len(ins.List(Filter{})); n < 5 || n > 10 {
		t.Errorf("got %d entries, want as many as fit", n)
	}
	for range 100 {
		tap := ins.HTTP(Meta{})
		tap.FromVisitor([]byte(getA))
		tap.Close()
		ins.listAll()
	}
	if n := len(ins.List(Filter{Limit: 1000})); n != 20 {
		t.Errorf("got %d entries, want 20", n)
	}
	ins.Clear()
	if used := ins.used.Load(); used != 0 || len(ins.List(Filter{})) != 0 {
		t.Errorf("after Clear: %d bytes are held", used)
	}
}

// TestBulkIsKeptInPart has more bodies pass at once than memory holds, and then
// some time later one more.
func TestBulkIsKeptInPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ins := New(Limits{Memory: 1 << 20})
		pass := func() Detail {
			tap := ins.HTTP(Meta{})
			tap.FromVisitor([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
			tap.FromOrigin([]byte("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"))
			for range 10 {
				tap.FromOrigin(bytes.Repeat([]byte("x"), 10_000))
			}
			tap.Close()
			ins.listAll()
			d, _ := ins.Detail(ins.List(Filter{Limit: 1})[0].ID, false)
			return d
		}
		if d := pass(); d.Response.Body.Truncated || len(d.Response.Body.Text) != 100_000 {
			t.Errorf("the first: %d bytes are kept, want all", len(d.Response.Body.Text))
		}
		for range 2 * keptPerSecond / 100_000 {
			pass()
		}
		if d := pass(); !d.Response.Body.Truncated || len(d.Response.Body.Text) > 10_000 || d.BytesOut < 100_000 {
			t.Errorf("in bulk: %d bytes are kept of %d, want few", len(d.Response.Body.Text), d.BytesOut)
		}
		time.Sleep(time.Second)
		if d := pass(); d.Response.Body.Truncated {
			t.Errorf("a second later: %d bytes are kept, want all", len(d.Response.Body.Text))
		}
	})
}

func TestTrafficNeverWaitsForTheList(t *testing.T) {
	ins := New(Limits{}) // nobody runs it
	for range 5000 {
		tap := ins.HTTP(Meta{})
		tap.FromVisitor([]byte(getA))
		tap.FromOrigin([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
		tap.Close()
	}
	if ins.Lost() == 0 {
		t.Error("nothing was lost")
	}
	ins.listAll()
	held := int64(0)
	for _, e := range ins.entries {
		held += e.weight()
	}
	if got := ins.used.Load(); got != held {
		t.Errorf("got %d bytes counted, want the %d of what is listed", got, held)
	}
}

func TestRunListsAndTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ins := New(Limits{})
		var told []Summary
		ins.Follow(func(e Told) { told = append(told, e.Data().(Summary)) })
		ctx, cancel := context.WithCancel(t.Context())
		go ins.Run(ctx)
		tap := ins.HTTP(Meta{})
		tap.FromVisitor([]byte(getA))
		synctest.Wait()
		time.Sleep(3 * time.Second)
		tap.FromOrigin([]byte("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"))
		synctest.Wait()
		tap.Close()
		time.Sleep(time.Second)
		cancel()
		if len(told) != 2 || told[0].State != "open" || told[1].State != "done" {
			t.Fatalf("got %+v, want each stage once", told)
		}
		if got := told[len(told)-1].DurationMillis; got != 3000 {
			t.Errorf("got %v ms, want 3000", got)
		}
	})
}

func TestFiltersPick(t *testing.T) {
	visitor := getA + "POST /b?q=Needle&n=%E8%AE%a2 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n" + getA
	origin := "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\nHTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"
	ins, list := hear(t, Limits{}, 1<<20, visitor, origin)
	for _, test := range []struct {
		f    Filter
		want int
	}{
		{Filter{}, 3},
		{Filter{Limit: 2}, 2},
		{Filter{Method: "post"}, 1},
		{Filter{Status: 404}, 1},
		{Filter{Status: 4}, 1},
		{Filter{Status: 5}, 1},
		{Filter{Text: "needle"}, 1},
		{Filter{Text: "198.51.100.9"}, 2},
		{Filter{Text: "nothing"}, 0},
		{Filter{Text: "NEEDLE&n=订"}, 1}, // browsers show what is written, and send it percent-encoded
		{Filter{Text: "单"}, 0},
		{Filter{Text: "Shop.example.com/a"}, 2}, // what the page finds, so that it exports what it shows
		{Filter{Text: "post a/b"}, 1},
		{Filter{Text: "404"}, 1},
		{Filter{Text: "198.51.100.9 shop"}, 2},
		{Filter{TunnelID: "tun_2"}, 0},
		{Filter{Kind: KindFlow}, 0},
		{Filter{Before: list[2].ID}, 2},
		{Filter{Until: list[0].Time}, 0},
		{Filter{Since: time.Now().Add(time.Hour)}, 0},
	} {
		if got := ins.List(test.f); len(got) != test.want {
			t.Errorf("%+v: got %d, want %d", test.f, len(got), test.want)
		}
	}
}

func TestSecretsAreHiddenUnlessAsked(t *testing.T) {
	visitor := "GET /a HTTP/1.1\r\nHost: a\r\nauthorization: Bearer geheim1\r\nCookie: s=geheim2\r\nX-Api-Key: geheim3\r\nAccept: */*\r\n\r\n"
	origin := "HTTP/1.1 200 OK\r\nSet-Cookie: s=geheim4\r\nContent-Length: 0\r\n\r\n"
	ins, list := hear(t, Limits{}, 1<<20, visitor, origin)
	d, _ := ins.Detail(list[0].ID, false)
	var har bytes.Buffer
	if err := ins.WriteHAR(&har, Filter{}, "1", false); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%+v %+v %+v %s", d, *d.Request, *d.Response, har.String())
	if strings.Contains(text, "geheim") {
		t.Errorf("a secret shows: %s", text)
	}
	if d.Request.Headers[1] != (Header{"authorization", "Bearer (redacted)", true}) {
		t.Errorf("got %+v, want the scheme alone", d.Request.Headers[1])
	}
	d, _ = ins.Detail(list[0].ID, true)
	if text := fmt.Sprintf("%+v %+v %+v", d, *d.Request, *d.Response); strings.Count(text, "geheim") < 4 {
		t.Errorf("revealed: got %s", text)
	}
	// A repeat whose headers come from the redacted view sends the real ones.
	hiddenView, _ := ins.Detail(list[0].ID, false)
	again, err := ins.Repeat(list[0].ID, Edit{Headers: hiddenView.Request.Headers})
	if err != nil || !bytes.Contains(again.Bytes, []byte("Bearer geheim1\r\n")) || !bytes.Contains(again.Bytes, []byte("s=geheim2\r\n")) {
		t.Errorf("got %q, %v", again.Bytes, err)
	}
}

// TestWhatTheTunnelGivesItsOriginIsHidden has a field that is a secret by no name
// of its own.
func TestWhatTheTunnelGivesItsOriginIsHidden(t *testing.T) {
	ins := New(Limits{})
	tap := ins.HTTP(Meta{TunnelID: "t", Secret: []string{"X-Origin-Key"}})
	tap.FromVisitor([]byte("GET /a HTTP/1.1\r\nHost: a\r\nx-origin-key: geheim\r\nX-Other: open\r\n\r\n"))
	tap.FromOrigin([]byte("HTTP/1.1 200 OK\r\nX-Origin-Key: open\r\nContent-Length: 0\r\n\r\n"))
	tap.Close()
	ins.listAll()
	id := ins.List(Filter{})[0].ID
	d, _ := ins.Detail(id, false)
	var har bytes.Buffer
	if err := ins.WriteHAR(&har, Filter{}, "1", false); err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%+v %+v %+v %s", d, *d.Request, *d.Response, har.String()); strings.Contains(text, "geheim") || strings.Count(text, "open") < 4 {
		t.Errorf("got %s", text)
	}
	shown, _ := ins.Detail(id, true)
	if get(shown.Request.Headers, "X-Origin-Key") != "geheim" {
		t.Errorf("revealed: got %+v", shown.Request)
	}
	for _, edited := range [][]Header{d.Request.Headers, {{Name: "X-Origin-Key", Value: hidden}}} {
		if again, err := ins.Repeat(id, Edit{Headers: edited}); err != nil || !bytes.Contains(again.Bytes, []byte("geheim\r\n")) {
			t.Errorf("repeated: got %q, %v", again.Bytes, err)
		}
	}
}

func TestBodiesAreDecompressedForViewing(t *testing.T) {
	const text = "hello, compressed world"
	encode := map[string]func(io.Writer) io.WriteCloser{
		"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
		"br":      func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
		"zstd":    func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z },
		"Deflate": func(w io.Writer) io.WriteCloser { f, _ := flate.NewWriter(w, 9); return f },
	}
	for name, make := range encode {
		var b bytes.Buffer
		w := make(&b)
		io.WriteString(w, text)
		w.Close()
		origin := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s", name, b.Len(), b.String())
		ins, list := hear(t, Limits{}, 5, getA, origin)
		d, _ := ins.Detail(list[0].ID, false)
		if got := d.Response.Body; got.Text != text || got.Encoding != strings.ToLower(name) || got.Size != int64(b.Len()) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	// A bomb shows its beginning.
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(make([]byte, maxDecoded+1<<20))
	w.Close()
	plain, cut, ok := decode("gzip", b.Bytes())
	if !ok || !cut || len(plain) != maxDecoded {
		t.Errorf("bomb: got %d bytes, cut %t, ok %t", len(plain), cut, ok)
	}
	if plain, _, ok := decode("gzip", []byte("no gzip")); ok {
		t.Errorf("got %q out of nothing", plain)
	}
}

func TestBinaryAndCutText(t *testing.T) {
	if _, ok := asText([]byte{0xff, 0xfe, 0}, false); ok {
		t.Error("binary was taken for text")
	}
	if got, ok := asText([]byte("gr\u00fc")[:3], true); !ok || got != "gr" {
		t.Errorf("cut within a character: got %q, %t", got, ok)
	}
}

// canBeShown shows, repeats and exports what is listed, whatever it is, and forgets it.
func canBeShown(t *testing.T, ins *Inspector, list []Summary) {
	t.Helper()
	for _, s := range list {
		d, ok := ins.Detail(s.ID, false)
		if !ok {
			t.Fatalf("%s is listed and not there", s.ID)
		}
		if _, err := json.Marshal(d); err != nil {
			t.Error(err)
		}
		ins.Repeat(s.ID, Edit{})
	}
	if err := ins.WriteHAR(io.Discard, Filter{}, "1", false); err != nil {
		t.Error(err)
	}
	ins.Clear()
	if used := ins.used.Load(); used != 0 {
		t.Errorf("%d bytes are held after Clear", used)
	}
}

func FuzzTap(f *testing.F) {
	f.Add([]byte(getA), []byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), 3)
	f.Add([]byte("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"), []byte("HTTP/1.1 101 X\r\n\r\nraw"), 1)
	f.Add([]byte("GET / HTTP/1.1\r\nUpgrade: x\r\n\r\n\x00\x01"), []byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"), 2)
	f.Fuzz(func(t *testing.T, visitor, origin []byte, piece int) {
		if piece < 1 {
			piece = 1
		}
		whole, wholeList := hear(t, Limits{Memory: 1 << 20, Body: 4 << 10}, 1<<20, string(visitor), string(origin))
		_, list := hear(t, Limits{Memory: 1 << 20, Body: 4 << 10}, piece, string(visitor), string(origin))
		if brief(list) != brief(wholeList) {
			t.Errorf("in pieces of %d: %q, as a whole: %q", piece, brief(list), brief(wholeList))
		}
		canBeShown(t, whole, wholeList)
	})
}

func BenchmarkTapResponse(b *testing.B) {
	ins := New(Limits{})
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() { defer close(done); ins.Run(ctx) }()
	defer func() { cancel(); <-done }()
	head := []byte("HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\nContent-Type: text/plain\r\n\r\n")
	body := make([]byte, 64<<10)
	tap := ins.HTTP(Meta{})
	b.SetBytes(1 << 20)
	b.ReportAllocs()
	for b.Loop() {
		tap.FromVisitor([]byte(getA))
		tap.FromOrigin(head)
		for range 16 {
			tap.FromOrigin(body)
		}
	}
}

// What is told of entries is held by the feed of events long after they have made
// room for others.
func TestEntriesThatMadeRoomHoldLittle(t *testing.T) {
	const memory, requests = 1 << 20, 150
	ins := New(Limits{Memory: memory})
	var told []Told
	ins.Follow(func(e Told) { told = append(told, e) })
	before := heap()
	for range requests {
		tap := ins.HTTP(Meta{TunnelID: "tun_1"})
		tap.FromVisitor([]byte("GET /" + strings.Repeat("a", 60<<10) + " HTTP/1.1\r\nHost: shop.example.com\r\n\r\n"))
		tap.Close()
		ins.listAll()
		ins.List(Filter{})
	}
	if held := heap() - before; held > 4*memory {
		t.Errorf("%d requests hold %d bytes, want no more than about %d", requests, held, memory)
	}
	for i, e := range told {
		if s := e.Data().(Summary); !strings.HasPrefix(s.Path, "/aaaa") || s.Host != "shop.example.com" {
			t.Fatalf("event %d is of %.20q at %q", i, s.Path, s.Host)
		}
	}
	runtime.KeepAlive(ins)
}

// heap is how many bytes are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // pools let go at the second
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
