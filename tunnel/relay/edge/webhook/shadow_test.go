package webhook

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"adit/tunnel/relay/policy"
)

// TestABodyThatIsOnlyLookedAtGoesOnWhole checks that a body in shadow mode is forwarded
// completely, even if it is too long to be kept, which the verdict then says. A body that the
// origin did not read to its end is admitted.
func TestABodyThatIsOnlyLookedAtGoesOnWhole(t *testing.T) {
	const text = "a body of some bytes"
	for name, test := range map[string]struct {
		most int64
		read int
		want policy.Decision
	}{
		"too long":       {int64(len(text)) - 1, len(text), policy.Decision{Rule: policy.RuleMaxBody, Detail: errTooLong.Error()}},
		"read in part":   {100, len(text) / 2, policy.Decision{Allowed: true}},
		"part, too long": {3, len(text) / 2, policy.Decision{Rule: policy.RuleMaxBody, Detail: errTooLong.Error()}},
	} {
		room := new(Room)
		at := &Holding{Of: room}
		kept := &keptBody{of: at, from: block(1), most: test.most}
		k := &Webhook{body: kept, shadow: &shadowBody{ReadCloser: io.NopCloser(iotest.OneByteReader(strings.NewReader(text))), body: kept}}
		got := make([]byte, test.read)
		if _, err := io.ReadFull(k.shadow, got); err != nil || string(got) != text[:test.read] {
			t.Errorf("%s: got %q, error %v, want the beginning of %q", name, got, err, text)
		}
		if test.read == len(text) {
			if n, err := k.shadow.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Errorf("%s: got %d bytes more, error %v, want the end", name, n, err)
			}
		}
		if d := k.Verdict(policy.Decision{}); d != test.want {
			t.Errorf("%s: got %+v, want %+v", name, d, test.want)
		}
		if test.want.Rule != "" && at.Bytes() != 0 {
			t.Errorf("%s: %d bytes are held of a body that is kept no more", name, at.Bytes())
		}
		k.Close()
		if at.Bytes() != 0 || room.all.all != 0 {
			t.Errorf("%s: %d and %d bytes are held after its end", name, at.Bytes(), room.all.all)
		}
	}
	before := policy.Decision{Rule: "deny"}
	if d := (*Webhook)(nil).Verdict(before); d != before {
		t.Errorf("of no webhook: got %+v, want %+v", d, before)
	}
	if d := new(Webhook).Verdict(before); d != before {
		t.Errorf("of a webhook that was decided on: got %+v, want %+v", d, before)
	}
	(*Webhook)(nil).Close()
}
