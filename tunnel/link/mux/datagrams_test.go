package mux

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"testing"
)

// TestDatagramsOutlastTheirWindow sends more of them than the window of their stream has
// room for, many times over.
func TestDatagramsOutlastTheirWindow(t *testing.T) {
	a, b := tcpPair(t)
	client, server := New(a, config(true)), New(b, config(false))
	defer client.Close("test over")
	defer server.Close("test over")
	got := make([]byte, MaxDatagram)
	for i := range 40 {
		from, to := client, server
		if i%2 == 1 {
			from, to = server, client
		}
		want := bytes.Repeat([]byte{byte(i)}, MaxDatagram-i)
		if err := from.SendDatagram(want); err != nil {
			t.Fatal(err)
		}
		n, err := to.ReceiveDatagram(within(t), got)
		if err != nil || !bytes.Equal(got[:n], want) {
			t.Fatalf("datagram %d came as %d bytes, %v", i, n, err)
		}
	}
	if err := client.SendDatagram(make([]byte, MaxDatagram+1)); err == nil {
		t.Error("one that is too large is taken")
	}
}

// TestUnreceivedDatagramsAreBounded has them lie, and takes the next once there is room.
func TestUnreceivedDatagramsAreBounded(t *testing.T) {
	for _, size := range []int{50_000, 10} {
		a, b := tcpPair(t)
		s := New(a, config(false))
		defer s.Close("test over")
		defer b.Close()
		for range 4000 {
			s.datagram(make([]byte, size))
			if held := s.queuedIn.Load(); held > maxQueued {
				t.Fatalf("%d bytes of datagrams of %d wait to be received", held, size)
			}
		}
		for range len(s.datagrams) {
			if _, err := s.ReceiveDatagram(within(t), nil); err != nil {
				t.Fatal(err)
			}
		}
		if held := s.queuedIn.Load(); held != 0 {
			t.Errorf("%d bytes of datagrams of %d are held when all are received", held, size)
		}
		s.datagram([]byte("next"))
		next := make([]byte, 10)
		if n, err := s.ReceiveDatagram(within(t), next); err != nil || string(next[:n]) != "next" {
			t.Errorf("the next came as %q, %v", next[:n], err)
		}
	}
}

// TestUnsentDatagramsAreBounded has a connection that takes nothing.
func TestUnsentDatagramsAreBounded(t *testing.T) {
	for _, size := range []int{50_000, 10} {
		s := stuckSession(t)
		for range 4000 {
			if err := s.SendDatagram(make([]byte, size)); err != nil {
				t.Fatal(err)
			}
		}
		s.mu.Lock()
		waiting, messages := 0, len(s.outgoing)
		for _, b := range s.outgoing {
			waiting += len(b)
		}
		s.mu.Unlock()
		if waiting > maxQueued || messages > 1024 {
			t.Errorf("%d datagrams, %d bytes, wait to be sent", messages, waiting)
		}
	}
}

// TestDatagramsLeaveRoomForTheReason sends them to a peer that grants no bytes.
func TestDatagramsLeaveRoomForTheReason(t *testing.T) {
	a, b := tcpPair(t)
	s := New(a, config(true))
	var all []byte
	read := make(chan error, 1)
	go func() {
		var err error
		all, err = io.ReadAll(b)
		b.Close()
		read <- err
	}()
	for range 40 {
		if err := s.SendDatagram(make([]byte, 20_000)); err != nil {
			t.Fatal(err)
		}
	}
	s.Close("enough")
	if err := <-read; err != nil {
		t.Fatal(err)
	}
	var messages []byte
	for rest := all; len(rest) >= 12; {
		kind, id, length := rest[1], binary.BigEndian.Uint32(rest[4:]), binary.BigEndian.Uint32(rest[8:])
		rest = rest[12:]
		if kind == typeData {
			if id == controlID {
				messages = append(messages, rest[:length]...)
			}
			rest = rest[length:]
		}
	}
	if len(messages) > initialWindow {
		t.Errorf("%d bytes came, want at most %d", len(messages), initialWindow)
	}
	if want := append([]byte{messageClose, 0, 6}, "enough"...); !slices.Equal(messages[max(0, len(messages)-len(want)):], want) {
		t.Errorf("the last message is not the reason of the end")
	}
}
