package inspect

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// side writes one direction of an HTTP/2 connection.
type side struct {
	bytes.Buffer
	*http2.Framer
	block   bytes.Buffer
	encoder *hpack.Encoder
}

func newSide(client bool) *side {
	s := &side{}
	s.Framer = http2.NewFramer(&s.Buffer, nil)
	s.encoder = hpack.NewEncoder(&s.block)
	if client {
		s.WriteString(http2.ClientPreface)
	}
	s.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 20})
	s.WriteWindowUpdate(0, 1<<20)
	return s
}

// encode makes a block of "name: value" pairs.
func (s *side) encode(pairs ...string) []byte {
	s.block.Reset()
	for _, pair := range pairs {
		i := strings.Index(pair[1:], ":") + 1
		s.encoder.WriteField(hpack.HeaderField{Name: pair[:i], Value: strings.TrimPrefix(pair[i+1:], " ")})
	}
	return bytes.Clone(s.block.Bytes())
}

func (s *side) headers(stream uint32, end bool, pairs ...string) {
	s.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: s.encode(pairs...), EndStream: end, EndHeaders: true})
}

func getOf(path string) []string {
	return []string{":method: GET", ":scheme: https", ":authority: shop.example.com", ":path: " + path, "x-forwarded-for: 198.51.100.9", "x-forwarded-proto: https"}
}

// hearStreams is hear for a connection of HTTP/2.
func hearStreams(t *testing.T, limits Limits, piece int, visitor, origin []byte) (*Inspector, []Summary) {
	t.Helper()
	ins := New(limits)
	tap := ins.HTTP2(Meta{TunnelID: "tun_1", TunnelName: "shop", Type: "https", Visitor: "192.0.2.7:4711"})
	for b := range slices.Chunk(visitor, piece) {
		tap.FromVisitor(bytes.Clone(b))
	}
	for b := range slices.Chunk(origin, piece) {
		b = bytes.Clone(b)
		tap.FromOrigin(b)
		clear(b) // the tap must not keep what it is shown
	}
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

func TestRequestsOfHTTP2AreFoundHoweverTheyAreCut(t *testing.T) {
	visitor, origin := newSide(true), newSide(false)
	visitor.headers(1, true, getOf("/one")...)
	// A block in three frames, with a priority and padding, and a body that is padded too.
	block := visitor.encode(":method: POST", ":scheme: https", ":authority: shop.example.com", ":path: /two?q=1", "content-type: application/grpc", "te: trailers")
	visitor.WriteHeaders(http2.HeadersFrameParam{
		StreamID: 3, BlockFragment: block[:5], PadLength: 9, Priority: http2.PriorityParam{StreamDep: 1, Weight: 7},
	})
	visitor.WriteContinuation(3, false, block[5:6])
	visitor.WriteContinuation(3, true, block[6:])
	visitor.WriteDataPadded(3, false, []byte("hello "), make([]byte, 200))
	visitor.headers(5, true, getOf("/three")...)
	visitor.WriteDataPadded(3, true, []byte("there"), []byte{})
	visitor.headers(7, true, getOf("/left")...)
	visitor.WriteRSTStream(7, http2.ErrCodeCancel)
	visitor.headers(9, true, getOf("/given-up")...)
	visitor.headers(11, true, getOf("/unanswered")...)

	origin.headers(3, false, ":status: 103", "link: </a>")
	origin.headers(3, false, ":status: 200", "content-type: application/grpc")
	origin.headers(1, false, ":status: 200", "content-type: text/plain", "set-cookie: a=b")
	origin.WriteData(3, false, []byte("th"))
	origin.WriteData(1, true, []byte("one"))
	origin.WriteData(3, false, []byte("ree"))
	origin.headers(3, true, "grpc-status: 5", "grpc-message: no such\r\nx-evil: 1")
	origin.headers(5, true, ":status: 404")
	origin.WriteRSTStream(9, http2.ErrCodeInternal)
	origin.headers(77, true, ":status: 200") // an answer to nothing

	for _, piece := range []int{1, 2, 7, 64, 1 << 20} {
		ins, list := hearStreams(t, Limits{}, piece, visitor.Bytes(), origin.Bytes())
		want := "GET /one 200 done, POST /two?q=1 200 done, GET /three 404 done, GET /left 0 failed, GET /given-up 0 failed, GET /unanswered 0 failed"
		if got := brief(list); got != want {
			t.Fatalf("in pieces of %d: got %s\nwant %s", piece, got, want)
		}
		if s := list[0]; s.Host != "shop.example.com" || s.Visitor != "198.51.100.9" || s.ContentType != "text/plain" || s.Kind != KindHTTP {
			t.Errorf("got %+v", s)
		}
		two, _ := ins.Detail(list[1].ID, false)
		if two.Request.Line != "POST /two?q=1 HTTP/2.0" || two.Request.Body.Text != "hello there" || two.Request.Body.Size != 11 {
			t.Errorf("got the request %+v", two.Request)
		}
		if two.Response.Line != "HTTP/2.0 200 OK" || two.Response.Body.Text != "three" || two.Response.Body.Size != 5 || two.Response.Body.Truncated {
			t.Errorf("got the response %+v", two.Response)
		}
		if got := fmt.Sprint(two.Response.Headers); got != "[{content-type application/grpc false} {grpc-status 5 false} {grpc-message no such  x-evil: 1 false}]" {
			t.Errorf("got the fields %s", got)
		}
		one, _ := ins.Detail(list[0].ID, false)
		if h := one.Response.Headers[1]; !h.Redacted || h.Value != hidden {
			t.Errorf("a cookie is shown: %+v", h)
		}
		if !strings.Contains(one.Curl, "'https://shop.example.com/one'") {
			t.Errorf("got %s", one.Curl)
		}
		again, err := ins.Repeat(list[1].ID, Edit{})
		if err != nil || !again.HTTP2 || again.ContentType != "application/grpc" || !strings.HasPrefix(string(again.Bytes), "POST /two?q=1 HTTP/1.1\r\nHost: shop.example.com\r\n") {
			t.Errorf("got %+v, %v", again, err)
		}
		for i, want := range map[int]string{3: "visitor left", 4: "gave the request up", 5: "connection ended"} {
			if !strings.Contains(list[i].Error, want) {
				t.Errorf("%s: got %q, want that the %s", list[i].Path, list[i].Error, want)
			}
		}
	}
}

// What cannot be followed is said once, and holds nothing up.
func TestOddStreamsAreGivenUp(t *testing.T) {
	large := "x: " + strings.Repeat("v", maxHead)
	for name, make := range map[string]func(visitor, origin *side){
		"fields beyond the bound": func(v, o *side) {
			o.headers(1, true, ":status: 200", large)
		},
		"a frame within a block": func(v, o *side) {
			o.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: o.encode(":status: 200")})
			o.WriteData(1, true, nil)
		},
		"a pushed request": func(v, o *side) {
			o.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, BlockFragment: o.encode(":method: GET"), EndHeaders: true})
		},
		"padding beyond the frame": func(v, o *side) {
			o.headers(1, false, ":status: 200")
			o.WriteRawFrame(http2.FrameData, http2.FlagDataPadded, 1, []byte{9, 1})
		},
		"another protocol": func(v, o *side) {
			o.Reset()
			o.WriteString("HTTP/1.1 400 Bad Request\r\n\r\n")
		},
		"a block that is none": func(v, o *side) {
			o.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
		},
	} {
		visitor, origin := newSide(true), newSide(false)
		visitor.headers(1, true, getOf("/a")...)
		make(visitor, origin)
		origin.headers(1, true, ":status: 200")
		_, list := hearStreams(t, Limits{}, 1<<20, visitor.Bytes(), origin.Bytes())
		if len(list) != 1 || list[0].State != stateFailed || list[0].Error != errFrames.Error() && name != "another protocol" {
			t.Errorf("%s: got %+v", name, list)
		}
	}
	ins := New(Limits{})
	tap := ins.HTTP2(Meta{})
	tap.FromVisitor([]byte("GET / HTTP/1.1\r\n\r\n"))
	tap.Refuse(0, "connection refused")
	ins.listAll()
	if list := ins.List(Filter{}); len(list) != 1 || list[0].Error != "connection refused" {
		t.Errorf("got %+v, want the visitor who was not heard to ask", list)
	}
}

// No connection follows more requests than the bound, nor one number twice.
func TestStreamsAreBounded(t *testing.T) {
	visitor := newSide(true)
	for i := range uint32(maxStreams + 10) {
		visitor.headers(2*i+1, true, getOf("/many")...)
	}
	visitor.WriteRSTStream(1, http2.ErrCodeCancel)
	visitor.headers(1, true, getOf("/twice")...)
	ins, list := hearStreams(t, Limits{}, 1<<20, visitor.Bytes(), nil)
	if len(ins.List(Filter{Limit: 10_000})) != maxStreams {
		t.Errorf("got %d requests, want %d", len(ins.List(Filter{Limit: 10_000})), maxStreams)
	}
	if last := list[len(list)-1]; last.Path != "/many" {
		t.Errorf("got %+v at the end", last)
	}
}

func FuzzStreams(f *testing.F) {
	visitor, origin := newSide(true), newSide(false)
	visitor.headers(1, false, getOf("/a")...)
	visitor.WriteDataPadded(1, true, []byte("body"), make([]byte, 3))
	origin.headers(1, false, ":status: 200", "content-type: text/plain")
	origin.WriteData(1, false, []byte("hello"))
	origin.headers(1, true, "grpc-status: 0")
	f.Add(visitor.Bytes(), origin.Bytes(), 3)
	f.Add(visitor.Bytes()[len(http2.ClientPreface):], origin.Bytes(), 1)
	f.Fuzz(func(t *testing.T, visitor, origin []byte, piece int) {
		limits := Limits{Memory: 1 << 20, Body: 4 << 10}
		whole, wholeList := hearStreams(t, limits, 1<<20, visitor, origin)
		_, list := hearStreams(t, limits, max(piece, 1), visitor, origin)
		if brief(list) != brief(wholeList) {
			t.Errorf("in pieces of %d: %q, as a whole: %q", piece, brief(list), brief(wholeList))
		}
		canBeShown(t, whole, wholeList)
	})
}
