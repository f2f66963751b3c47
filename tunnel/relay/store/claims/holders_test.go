package claims

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// TestAgentsThatComeAndGoDoNotFillAClaim shares a name among agents that are new at every
// start, like containers without a volume. What is kept of those that have gone must not grow
// until the claim is larger than the store accepts.
func TestAgentsThatComeAndGoDoNotFillAClaim(t *testing.T) {
	claim := Claim{Target: TargetDomain("shop.example.com"), ClientID: "c1"}
	holder := func(i int) Holder {
		return Holder{Slot: SlotTLS, Instance: fmt.Sprintf("i_%018d", i), Key: "declared-web", Type: "https", Mode: "balanced"}
	}
	const here = 3 // at once
	for i := range 5000 {
		away := func(_ string, h Holder) bool {
			return !slices.ContainsFunc([]int{i - 1, i - 2}, func(n int) bool { return n >= 0 && holder(n) == h })
		}
		next, err := take(claim, "c1", holder(i), away)
		if err != nil {
			t.Fatal(err)
		}
		claim = next
	}
	status, err := open(t, t.TempDir()).bucket.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	maxValue := int(status.(*jetstream.KeyValueBucketStatus).StreamInfo().Config.MaxMsgSize)
	text, err := json.Marshal(claim)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > maxValue/4 {
		t.Errorf("the claim has %d holders and %d bytes, of %d that the store takes", len(claim.Holders), len(text), maxValue)
	}
	for i := 5000 - here; i < 5000; i++ {
		if !slices.Contains(claim.Holders, holder(i)) {
			t.Errorf("agent %d is here and holds nothing", i)
		}
	}
}

// TestClaimThatIsTakenAnewMeanwhileStays has a node find a tunnel's agent away, which another
// node has by the time the claim is released.
func TestClaimThatIsTakenAnewMeanwhileStays(t *testing.T) {
	s := open(t, t.TempDir())
	target := TargetDomain("shop.example.com")
	h := Holder{Slot: SlotPlain, Instance: "i", Key: "k", Type: "http", Mode: "standard", Ephemeral: true}
	take := func(h Holder) {
		t.Helper()
		if _, err := s.Take(t.Context(), target, "c", h, nobodyAway); err != nil {
			t.Fatal(err)
		}
	}
	take(h)
	if err := s.ReleaseAway(t.Context(), target, "c", "i", "k", nobodyAway); err != nil || s.Count() != 1 {
		t.Errorf("of an agent that is there: %v, and %d claims are left", err, s.Count())
	}
	err := s.ReleaseAway(t.Context(), target, "c", "i", "k", func(string, Holder) bool {
		if err := s.Release(t.Context(), target, "c", "i", "k"); err != nil {
			t.Error(err)
		}
		take(h)
		return true
	})
	if err != nil || s.Count() != 1 {
		t.Errorf("taken anew meanwhile: %v, and %d claims are left", err, s.Count())
	}
	if err := s.ReleaseAway(t.Context(), target, "c", "i", "k", allAway); err != nil || s.Count() != 0 {
		t.Errorf("of an agent that is away: %v, and %d claims are left", err, s.Count())
	}
}
