package localapi

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func TestPreflightAllowsEveryMethodOfTheTable(t *testing.T) {
	const console = "https://console.example"
	g, err := newGuard(nil, []string{console})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodOptions, Prefix+"/status", nil)
	r.Header.Set("Origin", console)
	w := httptest.NewRecorder()
	g.answerPreflight(w, r)
	allowed := strings.Split(w.Header().Get("Access-Control-Allow-Methods"), ", ")
	s := &Server{cfg: Config{Agent: &fakeAgent{}}}
	for _, row := range s.table() {
		method := strings.TrimSpace(row.method)
		if !slices.Contains(allowed, method) {
			t.Errorf("%s %s: a console that is allowed may use %v only", method, row.path, allowed)
		}
		if !slices.Contains(countedMethods[:], method) {
			t.Errorf("%s %s: the figures know it as another method", method, row.path)
		}
	}
}
