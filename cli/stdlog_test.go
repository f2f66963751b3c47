package cli

import (
	"bytes"
	"log"
	"testing"
)

func TestAProgramThatSpeaksFirstIsNotQuoted(t *testing.T) {
	var said bytes.Buffer
	own := log.New(Untold(&said), "", 0)
	// As net/http has it.
	own.Printf("Unsolicited response received on idle HTTP channel starting with %q; err=%v", "SSH-2.0-OpenSSH_9", nil)
	own.Print("http: panic serving 127.0.0.1")
	if got := said.String(); got != "http: panic serving 127.0.0.1\n" {
		t.Errorf("got %q, want all but what the other said", got)
	}
}
