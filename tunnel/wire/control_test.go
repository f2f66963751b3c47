package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestMaxJSONBoundsAnEvent uses long values from the relay, and values from a visitor of which
// each byte becomes six.
func TestMaxJSONBoundsAnEvent(t *testing.T) {
	name, visitors := strings.Repeat("n", 64), strings.Repeat("\x01<", 1024)
	e := Access{
		ID: name, Time: time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC), Node: name, Endpoint: name, ClientID: name, Key: name,
		Visitor: "2001:db8:1111:2222:3333:4444:5555:6666", Country: "US-CA", Method: visitors, Host: visitors, Path: visitors,
		Status: 599, Refused: name, BytesIn: 1<<63 - 1, BytesOut: 1<<63 - 1, Duration: 1<<63 - 1,
	}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if most := e.MaxJSON(); len(text) > most || len(text) < 6*3*len(visitors) {
		t.Errorf("got %d bytes, at most %d", len(text), most)
	}
}
