package store

import (
	"encoding/json"
	"fmt"
	"testing"

	"adit/tunnel/relay/store/table"
)

// BenchmarkClientByID looks up one of ten thousand clients, as happens every five seconds for
// each client that has visitors.
func BenchmarkClientByID(b *testing.B) {
	s := open(b, b.TempDir())
	for i := range 10_000 {
		name := fmt.Sprintf("client-%d", i)
		text, err := json.Marshal(Client{ID: "c_" + name, Name: name})
		if err != nil {
			b.Fatal(err)
		}
		s.Told(table.Change{Table: "clients", Key: name, Revision: uint64(i + 1), Value: text})
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, ok := s.Clients.ByID(fmt.Sprintf("c_client-%d", i%10_000)); !ok {
			b.Fatal("a client is not found")
		}
		i++
	}
}
