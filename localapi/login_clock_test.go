package localapi

import (
	"testing"
	"testing/synctest"
	"time"
)

// signedIn makes a cookie.
func signedIn(t *testing.T, l *logins) string {
	t.Helper()
	code, _ := l.newCode(time.Now())
	cookie, ok := l.redeem(code, time.Now())
	if !ok {
		t.Fatal("a new code is refused")
	}
	return cookie
}

// TestCookieOfAWrongClock has browsers signed in while the clock stands in the
// future; each synctest bubble begins at the same moment.
func TestCookieOfAWrongClock(t *testing.T) {
	l := newLogins(testBearer)
	var hours, years string
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(12 * time.Hour)
		hours = signedIn(t, l)
		time.Sleep(9000 * time.Hour)
		years = signedIn(t, l)
		if _, ok := l.session(years); !ok {
			t.Error("a new cookie does not count")
		}
		if _, ok := l.session(hours); ok {
			t.Error("a cookie counts after its time")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		if _, ok := l.session(hours); !ok {
			t.Error("a clock that is set back by hours signs browsers out")
		}
		if _, ok := l.session(years); ok {
			t.Error("a cookie of the next year counts for a year")
		}
	})
}
