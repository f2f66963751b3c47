package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden file anew")

// TestBytesStayAsTheyAre pins the wire format: an older peer must read what a newer one
// writes.
func TestBytesStayAsTheyAre(t *testing.T) {
	var lines []string
	add := func(name string, b []byte) { lines = append(lines, name+" "+hex.EncodeToString(b)) }
	for _, c := range prefaces {
		b, err := AppendPreface(nil, c.preface)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		add("preface/"+c.name, b)
	}
	add("answer/connected", AppendAnswer(nil, nil))
	add("answer/refused", AppendAnswer(nil, errors.New("connection refused")))
	for _, c := range flows {
		add("flow/"+c.name, AppendFlow(nil, c.flow))
	}
	got := strings.Join(lines, "\n") + "\n"
	path := filepath.Join("testdata", "streams.golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))) {
		t.Errorf("bytes on the wire changed:\ngot\n%swant\n%s", got, want)
	}
}

var prefaces = []struct {
	name    string
	preface Preface
}{
	{"raw-v4", Preface{
		Visitor: netip.MustParseAddrPort("203.0.113.9:40000"), Edge: netip.MustParseAddrPort("198.51.100.1:20000"),
		Endpoint: 7, Kind: StreamRaw,
	}},
	{"http-v6", Preface{
		Visitor: netip.MustParseAddrPort("[2001:db8::9]:40000"), Edge: netip.MustParseAddrPort("[2001:db8::1]:443"),
		Endpoint: 0xfffffffe, Kind: StreamHTTP, Authority: "shop.example.com",
	}},
	{"http-path", Preface{
		Visitor: netip.MustParseAddrPort("203.0.113.9:40000"), Edge: netip.MustParseAddrPort("198.51.100.1:443"),
		Endpoint: 7, Kind: StreamHTTP, Authority: "shop.example.com", Path: "/api",
	}},
	{"raw-client", Preface{
		Visitor: netip.MustParseAddrPort("203.0.113.9:40000"), Edge: netip.MustParseAddrPort("198.51.100.1:4433"),
		Endpoint: 7, Kind: StreamRaw, Client: "laptop",
	}},
}

var flows = []struct {
	name string
	flow Flow
}{
	{"whole", Flow{Kind: FlowWhole, Endpoint: 1, Number: 2, Payload: []byte("hello")}},
	{"empty", Flow{Kind: FlowWhole, Endpoint: 1, Number: 2, Payload: []byte{}}},
	{"fragment", Flow{Kind: FlowFragment, Endpoint: 1, Number: 2, Packet: 0x0304, Index: 1, Count: 3, Payload: []byte("part")}},
	{"close", Flow{Kind: FlowClose, Endpoint: 1, Number: 2, Payload: []byte{}}},
	{"withheld", Flow{Kind: FlowWithheld, Endpoint: 1, Number: 2, Payload: []byte{}}},
	{"from", Flow{Kind: FlowFrom, Endpoint: 1, Number: 2, Payload: []byte("192.0.2.1:5000 laptop")}},
}

func ExampleAppendAnswer() {
	err := ReadAnswer(bytes.NewReader(AppendAnswer(nil, errors.New("nothing listens on port 8000"))))
	fmt.Println(err)
	// Output: nothing listens on port 8000
}
