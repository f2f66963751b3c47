package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"adit/internal/require"
)

func TestCaptureHoldsNothingButDTLS(t *testing.T) {
	require.Root(t)
	tcpdump := require.Tool(t, "tcpdump")
	relay := newRelay(t)
	file := filepath.Join(t.TempDir(), "tunnel.pcap")
	dump := exec.Command(tcpdump, "-i", "lo", "-U", "-s", "0", "-B", "32768", "-Z", "root", "-w", file, "udp", "port", fmt.Sprint(portOf(t, relay.tunnel)))
	var printed output
	dump.Stderr = &printed
	if err := dump.Start(); err != nil {
		t.Fatal(err)
	}
	defer dump.Process.Kill()
	await(t, "tcpdump listens", func() error {
		if !strings.Contains(printed.String(), "listening on") {
			return errorf("%s", printed.String())
		}
		return nil
	})

	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	agent.awaitDTLS()
	origin := newOrigin(t)
	made := agent.publish("http", origin, nil)
	visitor := relay.visitor()
	secret := "/a-path-that-nobody-on-the-way-may-read"
	for _, path := range []string{secret, "/file?size=300000"} {
		if code, _, err := fetch(visitor, strings.TrimSuffix(made.PublicURL, "/")+path); err != nil || code != http.StatusOK {
			t.Fatalf("%s: %d, %v", path, code, err)
		}
	}
	agent.proc.stop()
	await(t, "the capture has what passed", func() error { // the kernel hands packets over in blocks
		if info, err := os.Stat(file); err != nil || info.Size() < 300_000 {
			return errorf("%v, %v", info, err)
		}
		return nil
	})
	dump.Process.Signal(syscall.SIGINT)
	dump.Wait()

	capture, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	plain := make([]byte, 64)
	(&pattern{}).Read(plain)
	for name, text := range map[string][]byte{"path": []byte(secret), "body": plain, "greeting": []byte("proto=http")} {
		if bytes.Contains(capture, text) {
			t.Errorf("the capture has the plaintext of the %s", name)
		}
	}
	payloads := udpPayloads(t, capture)
	kinds := map[byte]int{}
	for _, payload := range payloads {
		if err := onlyDTLSRecords(payload, kinds); err != nil {
			t.Fatalf("%v in % x", err, payload[:min(len(payload), 48)])
		}
	}
	t.Logf("%d datagrams, records by type: %v", len(payloads), kinds)
	if kinds[22] == 0 || kinds[25] < 10 {
		t.Errorf("records by type: %v, want a handshake (22) and application data under a Connection ID (25)", kinds)
	}
}

// udpPayloads reads a pcap file of an Ethernet-framed loopback device.
func udpPayloads(t *testing.T, capture []byte) (payloads [][]byte) {
	t.Helper()
	if len(capture) < 24 || binary.LittleEndian.Uint32(capture) != 0xa1b2c3d4 {
		t.Fatalf("the capture has %d bytes and is not a pcap file", len(capture))
	}
	for rest := capture[24:]; len(rest) >= 16; {
		size := int(binary.LittleEndian.Uint32(rest[8:]))
		if len(rest) < 16+size {
			break // cut off when tcpdump ended
		}
		frame := rest[16 : 16+size]
		rest = rest[16+size:]
		const ethernet, udp = 14, 8
		if len(frame) < ethernet+20+udp || frame[ethernet]>>4 != 4 || frame[ethernet+9] != 17 {
			continue
		}
		payloads = append(payloads, frame[ethernet+int(frame[ethernet]&15)*4+udp:])
	}
	return payloads
}

// onlyDTLSRecords checks that a datagram is whole records of DTLS 1.2 (RFC 6347
// §4.1, RFC 9146 §4), and counts them by type. The Connection ID is 8 bytes here
// at most and is found by trying which length leaves whole records.
func onlyDTLSRecords(payload []byte, kinds map[byte]int) error {
	if len(payload) == 0 {
		return nil
	}
	if len(payload) < 13 {
		return errorf("a record of %d bytes", len(payload))
	}
	kind, version := payload[0], binary.BigEndian.Uint16(payload[1:])
	if kind < 20 || kind > 25 || version != 0xfefd && (kind != 22 || version != 0xfeff) {
		return errorf("a record of type %d, version %#x", kind, version)
	}
	lengths := []int{0}
	if kind == 25 {
		lengths = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}
	}
	for _, id := range lengths {
		at := 11 + id
		if len(payload) < at+2 {
			break
		}
		end := at + 2 + int(binary.BigEndian.Uint16(payload[at:]))
		if end > len(payload) {
			continue
		}
		inner := map[byte]int{}
		if onlyDTLSRecords(payload[end:], inner) == nil {
			kinds[kind]++
			for k, n := range inner {
				kinds[k] += n
			}
			return nil
		}
	}
	return errorf("a record of type %d whose length fits nowhere", kind)
}
