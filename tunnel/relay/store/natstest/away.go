package natstest

import (
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// StreamAway makes an empty stream disappear, as if no server answered for it, until back is
// called.
func (s *Server) StreamAway(name string) (back func()) {
	s.tb.Helper()
	conn, err := nats.Connect(s.URL())
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		s.tb.Fatal(err)
	}
	stream, err := js.Stream(s.tb.Context(), name)
	if err != nil {
		s.tb.Fatal(err)
	}
	cfg := stream.CachedInfo().Config
	if n := stream.CachedInfo().State.Msgs; n > 0 {
		s.tb.Fatalf("%s has %d messages", name, n)
	}
	if err := js.DeleteStream(s.tb.Context(), name); err != nil {
		s.tb.Fatal(err)
	}
	return func() {
		s.tb.Helper()
		if _, err := js.CreateStream(s.tb.Context(), cfg); err != nil {
			s.tb.Fatal(err)
		}
	}
}
