package presence

import (
	"testing"

	"adit/tunnel/relay/policy"
)

// silent is an answer of which nothing has moved.
type silent struct{}

func (silent) Moved() int64 { return 0 }
func (silent) GiveUp()      {}
func (silent) Over()        {}

// TestGuestsAreRemembered has every visit that was let in be one of which it is
// remembered what its path is read as.
func TestGuestsAreRemembered(t *testing.T) {
	var here Set
	for _, answer := range []Answer{nil, silent{}} {
		_, v := here.Enter(t.Context(), answer)
		v.LetIn(policy.Guest{Target: "/"})
		here.Remove(v)
		v.Leave()
		if v.guest.Reading == nil {
			t.Error("a guest is read anew each time")
		}
	}
}
