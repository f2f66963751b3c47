package mux

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"
)

// TestGatheredDatagramsComeTogether has messages wait for the last of them, and
// be served as they were read.
func TestGatheredDatagramsComeTogether(t *testing.T) {
	a, b := tcpPair(t)
	client, server := New(a, config(true)), New(b, config(false))
	defer client.Close("test over")
	defer server.Close("test over")
	came := make(chan []string, 10)
	go server.ServeDatagrams(within(t), func(list [][]byte) {
		var texts []string
		for _, b := range list {
			texts = append(texts, string(b))
		}
		came <- texts
	})
	next := func() []string {
		t.Helper()
		select {
		case got := <-came:
			return got
		case <-time.After(20 * time.Second):
			t.Fatal("nothing came")
			return nil
		}
	}
	send := func(text string) {
		t.Helper()
		if err := client.SendDatagram([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	send("alone")
	if got := next(); !slices.Equal(got, []string{"alone"}) {
		t.Fatalf("got %q, want what was sent alone", got)
	}
	want := []string{"a", "bc", "", "def"}
	for try := range 20 { // the writer that has just sent something may take the first along
		client.GatherDatagrams()
		for _, text := range want {
			send(text)
		}
		client.SendGathered()
		got := next()
		if slices.Equal(got, want) {
			return
		}
		t.Logf("try %d: first came %q", try, got)
		for len(got) < len(want) {
			got = append(got, next()...)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	t.Error("what is gathered never comes together")
}

// TestServedDatagramsComeInOrder has messages come before and while they are
// served, to a handler that sends on the same session.
func TestServedDatagramsComeInOrder(t *testing.T) {
	a, b := tcpPair(t)
	client, server := New(a, config(true)), New(b, config(false))
	defer client.Close("test over")
	defer server.Close("test over")
	const early, all = 20, 1000
	back := make(chan uint32, all)
	send := func(n int) {
		t.Helper()
		if err := client.SendDatagram(binary.BigEndian.AppendUint32(nil, uint32(n))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range early {
		send(i)
	}
	ctx, cancel := context.WithCancel(within(t))
	ended := make(chan error, 1)
	go func() {
		ended <- server.ServeDatagrams(ctx, func(list [][]byte) {
			for _, b := range list {
				back <- binary.BigEndian.Uint32(b)
				if err := server.SendDatagram(b); err != nil {
					t.Errorf("send: %v", err)
				}
			}
		})
	}()
	next := func(n int) {
		t.Helper()
		select {
		case got := <-back:
			if got != uint32(n) {
				t.Fatalf("message %d came as number %d", got, n)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("message %d did not come", n)
		}
	}
	for i := range early {
		next(i)
	}
	for i := early; i < all; i++ {
		send(i)
		next(i)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	// Afterwards they wait again for who receives them.
	send(all)
	buf := make([]byte, 16)
	if n, err := server.ReceiveDatagram(within(t), buf); n != 4 || err != nil || binary.BigEndian.Uint32(buf) != all {
		t.Errorf("got %d bytes, %v", n, err)
	}
	go func() {
		ended <- server.ServeDatagrams(context.Background(), func([][]byte) { go server.Close("enough") })
	}()
	send(all + 1)
	select {
	case err := <-ended:
		if err == nil {
			t.Error("it ended without its session")
		}
	case <-time.After(20 * time.Second):
		t.Error("it outlived its session")
	}
}
