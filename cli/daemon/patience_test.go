package daemon

import (
	"context"
	"errors"
	"testing"
)

func TestWhatIsRefusedOtherwiseIsNotAskedAgain(t *testing.T) {
	var tries int
	_, err := Patiently(context.Background(), func() (int, error) {
		tries++
		return 0, errors.New("something else")
	})
	if err == nil || tries != 1 {
		t.Errorf("another error: got %v after %d tries, want it after one", err, tries)
	}
}
