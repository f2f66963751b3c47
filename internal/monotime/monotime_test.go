package monotime

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAtIsTheMomentOfNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		was, then := time.Now(), Now()
		time.Sleep(time.Hour)
		if got := Now() - then; got != time.Hour {
			t.Errorf("an hour later Now is %v later", got)
		}
		if got := At(then); !got.Equal(was) || time.Since(got) != time.Hour {
			t.Errorf("At gave %v, want %v", got, was)
		}
	})
}

func TestWallLeavesAloneWhatNobodySet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		was := time.Now()
		time.Sleep(1000 * time.Hour)
		if got := Wall(was); !got.Equal(was) {
			t.Errorf("got %v, want %v", got, was)
		}
		if got := Wall(was.Round(0)); !got.Equal(was) {
			t.Errorf("without a monotonic reading: got %v, want %v", got, was)
		}
	})
}
