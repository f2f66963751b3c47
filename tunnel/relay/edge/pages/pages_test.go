package pages

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestGRPCIsToldByItsOwnStatus holds what a gRPC client is told against gRPC's mapping of
// HTTP statuses: only what may go well another time is 14, which clients try again.
func TestGRPCIsToldByItsOwnStatus(t *testing.T) {
	pages := New("", slog.New(slog.DiscardHandler))
	for status, want := range map[int]string{
		http.StatusBadRequest: "13", http.StatusUnauthorized: "16", http.StatusForbidden: "7", http.StatusNotFound: "12",
		http.StatusTooManyRequests: "14", http.StatusBadGateway: "14", http.StatusServiceUnavailable: "14", http.StatusGatewayTimeout: "14",
		http.StatusMisdirectedRequest:    "14", // by another connection
		http.StatusRequestEntityTooLarge: "2", http.StatusRequestTimeout: "2", http.StatusLoopDetected: "2", http.StatusNotImplemented: "2",
	} {
		r := httptest.NewRequest(http.MethodPost, "/pkg.Service/Method", nil)
		r.Header.Set("Content-Type", "application/grpc+proto")
		w := httptest.NewRecorder()
		pages.Answer(w, r, Page{Status: status, Title: "what is wrong"})
		if got := w.Header().Get("Grpc-Status"); w.Code != http.StatusOK || got != want {
			t.Errorf("%d: got status %d and gRPC's %q, want 200 and %q", status, w.Code, got, want)
		}
	}
}

// TestGRPCWebIsToldInItsOwnType: its clients take no answer of gRPC's type.
func TestGRPCWebIsToldInItsOwnType(t *testing.T) {
	pages := New("", slog.New(slog.DiscardHandler))
	for asked, want := range map[string]string{
		"application/grpc": "application/grpc", "application/grpc+proto": "application/grpc",
		"application/grpc-web": "application/grpc-web", "application/grpc-web+proto": "application/grpc-web",
		"application/grpc-web-text": "application/grpc-web-text", "application/grpc-web-text+proto; charset=utf-8": "application/grpc-web-text",
	} {
		r := httptest.NewRequest(http.MethodPost, "/pkg.Service/Method", nil)
		r.Header.Set("Content-Type", asked)
		w := httptest.NewRecorder()
		pages.Answer(w, r, Page{Status: http.StatusServiceUnavailable, Title: "This site is offline"})
		if got := w.Header().Get("Content-Type"); got != want || w.Header().Get("Grpc-Status") != "14" {
			t.Errorf("%s is answered as %s with gRPC's status %q, want %s with 14", asked, got, w.Header().Get("Grpc-Status"), want)
		}
	}
}
