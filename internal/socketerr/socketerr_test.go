package socketerr_test

import (
	"errors"
	"net"
	"testing"

	"adit/internal/socketerr"
)

func TestSystemSaysWhatIsNamedHere(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	again, err := net.Listen("tcp", addr)
	if err == nil {
		again.Close()
	}
	if !errors.Is(err, socketerr.InUse) {
		t.Errorf("listening twice: got %v, want %v", err, socketerr.InUse)
	}
	// TEST-NET-3 (RFC 5737) is nobody's.
	if other, err := net.Listen("tcp", "203.0.113.1:0"); err == nil {
		other.Close()
		t.Log("this machine lets its programs listen at others' addresses")
	} else if !errors.Is(err, socketerr.NoAddress) {
		t.Errorf("listening at another's address: got %v, want %v", err, socketerr.NoAddress)
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", addr)
	if err == nil {
		conn.Close()
		t.Skip("another program listens there now")
	}
	if !errors.Is(err, socketerr.Refused) {
		t.Errorf("dialing nobody: got %v, want %v", err, socketerr.Refused)
	}
}
