package wire

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func sampleToken(t testing.TB) Token {
	t.Helper()
	token := Token{Relay: "relay.example.com:4433"}
	for _, part := range [][]byte{token.Fingerprint[:], token.Secret[:]} {
		if _, err := rand.Read(part); err != nil {
			t.Fatal(err)
		}
	}
	return token
}

func TestTokenComesBackAsItWas(t *testing.T) {
	for _, relay := range []string{"relay.example.com:4433", "192.0.2.7:1", "[2001:db8::1]:65535"} {
		want := sampleToken(t)
		want.Relay = relay
		got, err := ParseToken("  " + want.Reveal() + "\n")
		if err != nil {
			t.Fatalf("%s: %v", relay, err)
		}
		if got != want {
			t.Errorf("got %#v, want %#v", got, want)
		}
	}
}

func TestTokenRefusesWhatIsNotOne(t *testing.T) {
	good := sampleToken(t).Reveal()
	noPort := sampleToken(t)
	noPort.Relay = "relay.example.com"
	zeroPort := sampleToken(t)
	zeroPort.Relay = "relay.example.com:0"
	noHost := sampleToken(t)
	noHost.Relay = ":4433"
	longHost := sampleToken(t)
	longHost.Relay = strings.Repeat("a", maxTokenAddr-len(":4433")+1) + ":4433"
	changed := []byte(good)
	changed[40] ^= 1
	cases := map[string]string{
		"empty":           "",
		"another prefix":  "ngrok_" + good[5:],
		"no body":         TokenPrefix,
		"cut short":       good[:len(good)-3],
		"one bit off":     string(changed),
		"inner space":     good[:30] + " " + good[30:],
		"far too long":    good + strings.Repeat("A", 2000),
		"relay has no :n": noPort.Reveal(),
		"relay port zero": zeroPort.Reveal(),
		"relay no host":   noHost.Reveal(),
		"relay too long":  longHost.Reveal(),
	}
	for name, text := range cases {
		if _, err := ParseToken(text); !errors.Is(err, ErrToken) {
			t.Errorf("%s: got %v, want ErrToken", name, err)
		}
	}
}

// TestTokenThatWasCutIsSaidToBe checks that truncated base64 is not reported as a wrong
// character.
func TestTokenThatWasCutIsSaidToBe(t *testing.T) {
	good := sampleToken(t).Reveal()
	for cut := 1; cut < 8; cut++ {
		if _, err := ParseToken(good[:len(good)-cut]); err == nil || !strings.Contains(err.Error(), "missing") {
			t.Errorf("%d letters short: got %v, want that a part is missing", cut, err)
		}
	}
	for _, bad := range []string{good[:20] + "é" + good[20:], good + "…", good[:20] + "+" + good[21:]} {
		if _, err := ParseToken(bad); err == nil || !strings.Contains(err.Error(), "characters") {
			t.Errorf("%q: got %v, want that there are wrong characters", bad, err)
		}
	}
}

// TestTokenOfALaterVersionIsSaidToBe uses a token that a later relay may issue.
func TestTokenOfALaterVersionIsSaidToBe(t *testing.T) {
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(sampleToken(t).Reveal(), TokenPrefix))
	if err != nil {
		t.Fatal(err)
	}
	data := raw[:len(raw)-tokenSumSize]
	data[0] = tokenVersion + 1
	sum := sha256.Sum256(data)
	text := TokenPrefix + base64.RawURLEncoding.EncodeToString(append(data, sum[:tokenSumSize]...))
	if _, err := ParseToken(text); !errors.Is(err, ErrToken) || !strings.Contains(err.Error(), "update adit") {
		t.Errorf("got %v, want that adit is to be updated", err)
	}
}

func TestTokenDoesNotPrintItsSecret(t *testing.T) {
	token := sampleToken(t)
	body := strings.TrimPrefix(token.Reveal(), TokenPrefix)
	for _, printed := range []string{fmt.Sprint(token), fmt.Sprintf("%v %s", token, token), token.Hint()} {
		if strings.Contains(printed, body[40:60]) {
			t.Errorf("%q reveals the token", printed)
		}
	}
	if other := sampleToken(t); other.Hint() == token.Hint() {
		t.Error("two tokens have the same hint")
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(sampleToken(f).Reveal())
	f.Add("adit_AA")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseToken(text)
		if err != nil {
			return
		}
		again, err := ParseToken(token.Reveal())
		if err != nil || again != token {
			t.Fatalf("%q: parsed once, then %v", text, err)
		}
	})
}
