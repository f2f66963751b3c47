package store

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/natstest"
)

// TestNATSWithoutRoomIsSaid at once to whoever writes, and as the store's condition, until
// there is room again.
func TestNATSWithoutRoomIsSaid(t *testing.T) {
	t.Parallel() // most of it is waiting
	s := openAt(t, Config{URLs: []string{natstest.StartSmall(t, 8<<20).URL()}, EventsBytes: 1 << 20})
	js := s.engine.JetStream()
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "others", Subjects: []string{"others"}}); err != nil {
		t.Fatal(err)
	}
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		_, err = js.Publish(t.Context(), "others", make([]byte, 256<<10))
	}
	if err == nil {
		t.Fatal("the server takes more than it has room for")
	}
	add := func() error { return errOf(s.Clients.Add(t.Context(), "shop", secret(), "")) }
	if err := add(); !bucket.IsFull(err) || bucket.IsAway(err) {
		t.Errorf("got %v, want that there is no room", err)
	}
	eventually(t, "the store is said to be full", func() bool {
		_ = add()
		return s.Condition() == Full
	})
	if err := js.DeleteStream(t.Context(), "others"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "there is room", func() bool { return add() == nil })
	eventually(t, "the store is said to be there", func() bool { return s.Condition() == Here })
}
