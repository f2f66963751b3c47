package tray

import "fmt"

// Notice is a notification: something that a person wants to learn without having asked.
type Notice struct{ Title, Body string }

// address is a public address of a tunnel.
type address struct{ tunnelID, publicURL string }

func (e Endpoint) address() address { return address{e.TunnelID, e.PublicURL} }

// lostSince returns Lost for a view that follows another.
func (v View) lostSince(before View) bool {
	if v.Reachable && v.Status.State != "reconnecting" && v.Status.State != "connecting" {
		return false
	}
	return before.Lost || before.Reachable && before.Status.State == "connected"
}

// Notices returns what is worth telling between two looks: that the connection is lost or back,
// that the token is refused, and each new public address. An address that was seen before is not
// new, because a restored session has its addresses only a little later. What the person has done
// themself, such as pausing, is no news.
func Notices(before, after View, seen map[address]bool, w words) []Notice {
	var notices []Notice
	was, is := before.Status.State, after.Status.State
	switch {
	case before.Reachable && !after.Reachable:
		return []Notice{{w.lost, w.absence(after)}}
	case !after.Reachable:
		return nil
	case was == "connected" && (is == "reconnecting" || is == "connecting"):
		notices = append(notices, Notice{w.lost, after.Status.LastError})
	case is == "connected" && before.Reachable && before.Lost:
		notices = append(notices, Notice{w.back, after.Status.Relay})
	case is == "rejected" && was != "rejected":
		notices = append(notices, Notice{w.states["rejected"], after.Status.LastError})
	}
	if !before.Reachable {
		return notices // it has just started: all addresses would be new
	}
	known := make(map[string]bool, len(before.Endpoints))
	for _, e := range before.Endpoints {
		known[e.PublicURL] = true
	}
	var fresh []string
	for _, e := range after.Endpoints {
		if e.PublicURL != "" && !known[e.PublicURL] && !seen[e.address()] {
			fresh = append(fresh, e.PublicURL)
		}
	}
	switch {
	// After a reconnection, addresses come back: one notice for that is enough.
	case len(fresh) == 0 || len(before.Endpoints) == 0 && was != "connected":
	case len(fresh) == 1:
		notices = append(notices, Notice{w.newURL, fresh[0]})
	default:
		notices = append(notices, Notice{w.newURL, fmt.Sprintf("%s (+%d)", fresh[0], len(fresh)-1)})
	}
	return notices
}
