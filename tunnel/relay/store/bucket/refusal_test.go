package bucket

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestRefusalsForGood distinguishes what a cluster will never do from what it cannot do yet.
func TestRefusalsForGood(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		good bool
	}{
		"a server is away":      {&jetstream.APIError{Code: 400, ErrorCode: 10005, Description: "no suitable peers for placement, peer offline"}, false},
		"a server is not known": {&jetstream.APIError{Code: 400, ErrorCode: 10005, Description: "no suitable peers for placement"}, false},
		"nothing of it is yet":  {&jetstream.APIError{Code: 400, ErrorCode: 10005, Description: "no suitable peers for placement, miscellaneous issue"}, false},
		"one is full, one away": {&jetstream.APIError{Code: 400, ErrorCode: 10005, Description: "no suitable peers for placement, peer offline, insufficient storage"}, false},
		"no server has the tag": {&jetstream.APIError{Code: 400, ErrorCode: 10005, Description: "no suitable peers for placement, tags not matched ['ssd']"}, true},
		"no server has room":    {&jetstream.APIError{Code: 400, ErrorCode: 10005, Description: "no suitable peers for placement, insufficient storage"}, true},
		"the server is full":    {&jetstream.APIError{Code: 503, ErrorCode: 10023, Description: "insufficient resources"}, true},
		"the account is full":   {&jetstream.APIError{Code: 400, ErrorCode: 10002, Description: "resource limits exceeded for account"}, true},
		"the stream is full":    {&jetstream.APIError{Code: 503, ErrorCode: 10077, Description: "maximum bytes exceeded"}, true},
		"a write failed":        {&jetstream.APIError{Code: 503, ErrorCode: 10077, Description: "raft: not leader"}, false},
		"no leader":             {&jetstream.APIError{Code: 503, ErrorCode: 10008, Description: "JetStream system temporarily unavailable"}, false},
		"bad configuration":     {&jetstream.APIError{Code: 400, ErrorCode: 10052, Description: "replicas"}, true},
		"nobody answers":        {nats.ErrNoResponders, false},
		"answered from beneath": {fmt.Errorf("open: %w", &jetstream.APIError{Code: 400, ErrorCode: 10052}), true},
	} {
		if IsRefusal(c.err) != c.good {
			t.Errorf("%s: refused for good: %v", name, !c.good)
		}
	}
}

// TestAStreamThatIsNotMadeIsNoFullStore matters because there may be room in other streams.
func TestAStreamThatIsNotMadeIsNoFullStore(t *testing.T) {
	for name, c := range map[string]struct {
		err          error
		full, unmade bool
	}{
		"a stream may have too much": {&jetstream.APIError{Code: 500, ErrorCode: 10047, Description: "insufficient storage resources available"}, true, true},
		"and in a cluster":           {&jetstream.APIError{Code: 400, ErrorCode: 10005, Description: "no suitable peers for placement, insufficient storage"}, true, true},
		"where one is away":          {&jetstream.APIError{Code: 400, ErrorCode: 10005, Description: "no suitable peers for placement, peer offline, insufficient storage"}, false, false},
		"a server is full":           {&jetstream.APIError{Code: 503, ErrorCode: 10023, Description: "insufficient resources"}, true, false},
		"an account is":              {&jetstream.APIError{Code: 400, ErrorCode: 10002, Description: "resource limits exceeded for account"}, true, false},
	} {
		var m Meter
		m.Add(time.Now(), c.err)
		if full, unmade := IsFull(c.err), IsUnmade(c.err); full != c.full || unmade != c.unmade || m.Full() != (c.full && !c.unmade) {
			t.Errorf("%s: full %t, unmade %t, and the store is full: %t", name, full, unmade, m.Full())
		}
	}
}
