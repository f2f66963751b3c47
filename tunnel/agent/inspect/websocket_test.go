package inspect

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"
)

const (
	askSocket = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	takeIt    = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
)

// frame is one of a WebSocket; first has its opcode and flags.
func frame(first byte, masked bool, payload string) []byte {
	b := []byte{first}
	bit := byte(0)
	if masked {
		bit = 0x80
	}
	switch n := len(payload); {
	case n < 126:
		b = append(b, bit|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, bit|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, bit|127), uint64(n))
	}
	if !masked {
		return append(b, payload...)
	}
	key := []byte{0x11, 0xff, 0x33, 0xd4}
	b = append(b, key...)
	for i := range len(payload) {
		b = append(b, payload[i]^key[i&3])
	}
	return b
}

// hearSocket has a tap hear a WebSocket in pieces of the given size.
func hearSocket(t *testing.T, limits Limits, piece int, extensions string, visitor, origin []byte) (*Inspector, Detail) {
	t.Helper()
	ins := New(limits)
	tap := ins.HTTP(Meta{TunnelID: "tun_1"})
	tap.FromVisitor([]byte(askSocket))
	tap.FromOrigin([]byte(takeIt + extensions + "\r\n"))
	for b := range slices.Chunk(visitor, piece) {
		b = bytes.Clone(b)
		tap.FromVisitor(b)
		clear(b) // the tap must not keep what it is shown
	}
	for b := range slices.Chunk(origin, piece) {
		b = bytes.Clone(b)
		tap.FromOrigin(b)
		clear(b)
	}
	tap.VisitorEnded()
	tap.OriginEnded()
	tap.Close()
	ins.listAll()
	d, ok := ins.Detail(ins.List(Filter{})[0].ID, false)
	if !ok || d.State != stateDone || d.Status != 101 {
		t.Fatalf("got %+v, %v", d.Summary, ok)
	}
	if want := int64(len(askSocket) + len(visitor)); d.BytesIn != want {
		t.Errorf("%d bytes came in, want %d", d.BytesIn, want)
	}
	return ins, d
}

func talkOf(d Detail) string {
	var out []string
	for _, m := range d.Messages {
		text := m.Text + m.Base64
		if len(text) > 20 {
			text = fmt.Sprintf("%s…%d", text[:20], len(text))
		}
		line := m.From + " " + m.Type + " " + text
		if m.Truncated {
			line += " cut"
		}
		if m.Unread {
			line += " unread"
		}
		out = append(out, line)
	}
	return strings.Join(out, "; ")
}

func TestMessagesOfAWebSocketAreFoundHoweverTheyAreCut(t *testing.T) {
	long := strings.Repeat("long ", 60)
	huge := strings.Repeat("huge ", 20_000)
	visitor := slices.Concat(
		frame(0x81, true, "hello"),
		frame(0x01, true, "in "), frame(0x89, true, "ping"), frame(0x00, true, "three "), frame(0x80, true, "parts"),
		frame(0x82, true, "\x00\x01\x02"),
		frame(0x81, true, long),
		frame(0x81, true, ""),
		frame(0x88, true, "\x03\xe8bye"),
	)
	origin := slices.Concat(frame(0x81, false, "welcome"), frame(0x8a, false, "ping"), frame(0x81, false, huge), frame(0x88, false, ""))
	for _, piece := range []int{1, 3, 100, 1 << 20} {
		_, d := hearSocket(t, Limits{}, piece, "", visitor, origin)
		want := "visitor text hello; visitor text in three parts; visitor binary AAEC; visitor text long long long long …300; visitor text ; visitor close 1000 bye; " +
			"origin text welcome; origin text huge huge huge huge …65536 cut; origin close "
		if got := talkOf(d); got != want {
			t.Errorf("in pieces of %d: got %s\nwant %s", piece, got, want)
		}
		if size := d.Messages[7].Size; size != int64(len(huge)) {
			t.Errorf("got the size %d, want %d", size, len(huge))
		}
	}
}

// pack compresses a message as permessage-deflate does.
func pack(w *flate.Writer, out *bytes.Buffer, text string) string {
	out.Reset()
	w.Write([]byte(text))
	w.Flush()
	return strings.TrimSuffix(out.String(), "\x00\x00\xff\xff")
}

func TestCompressedMessagesAreRead(t *testing.T) {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	messages := []string{`{"event":"begin","of":"something"}`, `{"event":"begin","of":"something else"}`, strings.Repeat("many words ", 9000), `{"event":"begin","of":"something else"}`}
	together, alone := frame(0x81, false, "plain"), []byte(nil)
	for i, text := range messages {
		together = append(together, frame(0xc1, false, pack(w, &out, text))...)
		if i == 1 {
			together = append(together, frame(0x81, false, "plain between")...)
		}
	}
	for _, text := range messages {
		w.Reset(&out)
		alone = append(alone, frame(0xc2, true, pack(w, &out, text))...)
	}
	want := `origin text plain; origin text {"event":"begin","of…34; origin text {"event":"begin","of…39; origin text plain between; ` +
		`origin text many words many word…65536 cut; origin text {"event":"begin","of…39`
	_, d := hearSocket(t, Limits{}, 7, "Sec-WebSocket-Extensions: permessage-deflate\r\n", nil, together)
	if got := talkOf(d); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	_, d = hearSocket(t, Limits{}, 7, "Sec-WebSocket-Extensions: permessage-deflate; client_no_context_takeover\r\n", alone, nil)
	want = `visitor binary {"event":"begin","of…34; visitor binary {"event":"begin","of…39; visitor binary many words many word…65536 cut; visitor binary {"event":"begin","of…39`
	if got := talkOf(d); got != want {
		t.Errorf("each alone: got %s\nwant %s", got, want)
	}

	// What was not kept whole cannot be undone, nor what refers to it.
	noise := make([]byte, 2*maxMessage)
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x = x*1664525 + 1013904223
		noise[i] = byte(x >> 24)
	}
	w.Reset(&out)
	first := pack(w, &out, string(noise))
	broken := slices.Concat(frame(0xc2, false, first), frame(0xc1, false, pack(w, &out, "after")), frame(0x81, false, "plain"))
	_, d = hearSocket(t, Limits{}, 1<<10, "Sec-WebSocket-Extensions: permessage-deflate\r\n", nil, broken)
	if got, want := talkOf(d), "origin binary  cut unread; origin text  unread; origin text plain"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// A few bytes that say very many are read as long as there is time for them.
func TestInflatingIsPaced(t *testing.T) {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	ins := New(Limits{})
	e := ins.newEntry(Meta{}, KindHTTP)
	few, many := pack(w, &out, "a few"), ""
	w.Reset(&out)
	many = pack(w, &out, strings.Repeat("many", 100_000))
	for _, left := range []bool{true, false} {
		if !left {
			ins.pace.left.Store(0)
			ins.pace.at.Store(1 << 62) // it is not filled again
		}
		f := &inflater{alone: true}
		before := ins.pace.left.Load()
		if plain, unread := f.undo(e, []byte(few), false); string(plain) != "a few" || unread {
			t.Errorf("time left %t: of a few got %q", left, plain)
		}
		if plain, unread := f.undo(e, []byte(many), false); unread == left || left && len(plain) != 400_000 {
			t.Errorf("time left %t: got %d bytes of %d, unread %t", left, len(plain), len(many), unread)
		}
		if took := before - ins.pace.left.Load(); left && took != 400_005 || !left && took != 0 {
			t.Errorf("time left %t: %d bytes were charged", left, took)
		}
	}
}

// The archive has them as Chromium's developer tools write them.
func TestMessagesAreInTheArchive(t *testing.T) {
	ins, d := hearSocket(t, Limits{}, 100, "", slices.Concat(frame(0x81, true, "hello"), frame(0x88, true, "\x03\xe8")), frame(0x82, false, "text"))
	var out bytes.Buffer
	if err := ins.WriteHAR(&out, Filter{}, "1", false); err != nil {
		t.Fatal(err)
	}
	var doc har
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	e := doc.Log.Entries[0]
	for i, want := range []harMessage{{Type: "send", Opcode: 1, Data: "hello"}, {Type: "send", Opcode: 8, Data: "1000"}, {Type: "receive", Opcode: 2, Data: "dGV4dA=="}} {
		got := e.Messages[i]
		if got.Time < float64(d.Time.Unix()) || got.Time > float64(d.Time.Unix()+60) {
			t.Errorf("message %d is of the time %f", i, got.Time)
		}
		if got.Time = 0; got != want || e.ResourceType != "websocket" {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// A visitor has the answer that turns the connection into a WebSocket before the
// tap hears it, and may speak at once.
func TestVisitorsWhoSpeakAtOnceAreHeard(t *testing.T) {
	ins := New(Limits{})
	tap := ins.HTTP(Meta{})
	tap.FromVisitor([]byte(askSocket))
	message := frame(0x81, true, "early")
	tap.FromVisitor(message[:4])
	tap.FromVisitor(message[4:])
	tap.FromOrigin([]byte(takeIt + "\r\n"))
	tap.FromVisitor(frame(0x81, true, "later"))
	tap.Close()
	ins.listAll()
	d, _ := ins.Detail(ins.List(Filter{})[0].ID, false)
	if got := talkOf(d); got != "visitor text early; visitor text later" {
		t.Errorf("got %s", got)
	}
	// One whose upgrade is refused may ask for something else at once.
	ins = New(Limits{})
	tap = ins.HTTP(Meta{})
	tap.FromVisitor([]byte(askSocket))
	tap.FromVisitor([]byte(getA))
	tap.FromOrigin([]byte("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
	tap.Close()
	ins.listAll()
	if got := brief(ins.List(Filter{})); got != "GET /a 200 done, GET /ws 400 done" {
		t.Errorf("got %s", got)
	}
}

func TestTalkIsBounded(t *testing.T) {
	var many []byte
	for i := range maxMessages + 10 {
		many = append(many, frame(0x81, false, fmt.Sprint(i))...)
	}
	_, d := hearSocket(t, Limits{}, 1<<20, "", nil, many)
	if len(d.Messages) != maxMessages || d.MessagesMissed != 10 || d.Messages[0].Text != "10" {
		t.Errorf("got %d messages from %q on, %d missed", len(d.Messages), d.Messages[0].Text, d.MessagesMissed)
	}
	large := bytes.Repeat(frame(0x82, false, strings.Repeat("x", maxMessage)), 40)
	ins, d := hearSocket(t, Limits{}, 1<<20, "", nil, large)
	if n := len(d.Messages); n < 10 || n > maxTalk/maxMessage || n+d.MessagesMissed != 40 {
		t.Errorf("got %d large messages, %d missed", n, d.MessagesMissed)
	}
	if used := ins.used.Load(); used > maxTalk+entryCost+1000 {
		t.Errorf("%d bytes are held", used)
	}
	ins.Clear()
	if used := ins.used.Load(); used != 0 {
		t.Errorf("%d bytes are held after Clear", used)
	}
	// It takes an eighth of the memory at most, and no message more than that.
	few := slices.Concat(many, frame(0x82, false, strings.Repeat("x", 6000)))
	ins, d = hearSocket(t, Limits{Memory: 40_000}, 1<<20, "", nil, few)
	if n := len(d.Messages); n+d.MessagesMissed != maxMessages+11 || ins.used.Load() > 5000+entryCost+1000 {
		t.Errorf("got %d messages, %d missed, %d bytes", n, d.MessagesMissed, ins.used.Load())
	}
}

func FuzzSocket(f *testing.F) {
	f.Add(slices.Concat(frame(0x01, true, "a"), frame(0x89, true, ""), frame(0x80, true, "b")), frame(0x88, false, "\x03\xe8"), 2, false)
	f.Add([]byte{0xc1, 0x80, 1, 2, 3, 4}, []byte{0x81, 127, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 1, true)
	f.Fuzz(func(t *testing.T, visitor, origin []byte, piece int, packed bool) {
		extensions := ""
		if packed {
			extensions = "Sec-WebSocket-Extensions: permessage-deflate\r\n"
		}
		if len(visitor) > 0 && 'A' <= visitor[0] && visitor[0] <= 'Z' {
			return
		}
		limits := Limits{Memory: 1 << 20}
		ins, whole := hearSocket(t, limits, 1<<20, extensions, visitor, origin)
		_, cut := hearSocket(t, limits, max(piece, 1), extensions, visitor, origin)
		if talkOf(whole) != talkOf(cut) {
			t.Errorf("in pieces of %d: %q, as a whole: %q", piece, talkOf(cut), talkOf(whole))
		}
		canBeShown(t, ins, []Summary{whole.Summary})
	})
}
