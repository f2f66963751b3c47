package tray

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"adit/internal/visible"
	"adit/internal/wildcard"
)

// Kind is what a click does.
type Kind string

// The kinds of Action.
const (
	None        Kind = ""
	CopyURL     Kind = "copy"  // Arg is the text
	OpenURL     Kind = "open"  // Arg is the address
	OpenWebUI   Kind = "webui" // Arg is the place in it
	Order       Kind = "order" // Arg is pause, resume or reconnect
	StartDaemon Kind = "start"
	AtLogin     Kind = "login"
	Quit        Kind = "quit"
)

// Action is what a click does, and to what.
type Action struct {
	Kind Kind
	Arg  string
}

// Item is one line of the menu.
type Item struct {
	Title     string
	Disabled  bool
	Separator bool
	Checkable bool
	Checked   bool
	Action    Action
	Items     []Item // its submenu
}

func sameItem(a, b Item) bool {
	return a.Title == b.Title && a.Disabled == b.Disabled && a.Separator == b.Separator &&
		a.Checkable == b.Checkable && a.Checked == b.Checked && a.Action == b.Action &&
		slices.EqualFunc(a.Items, b.Items, sameItem)
}

// sameShape reports whether b can be shown by changing a's lines in place.
func sameShape(a, b []Item) bool {
	return slices.EqualFunc(a, b, func(a, b Item) bool {
		return a.Separator == b.Separator && a.Checkable == b.Checkable && sameShape(a.Items, b.Items)
	})
}

// View is everything that the menu depends on.
type View struct {
	Reachable bool // the daemon answers; without that Status and Endpoints say nothing
	Silent    bool // somebody is there and does not answer: not Reachable
	Status    Status
	Lost      bool // the session, or the daemon with it, was there and is not back yet
	Endpoints []Endpoint
	CanStart  bool
	AtLogin   bool
	Note      string // what went wrong with the last click
	Version   string
}

// Icon says which icon is shown.
type Icon string

// The icons.
const (
	IconConnected  Icon = "connected"
	IconConnecting Icon = "connecting"
	IconOff        Icon = "off"
	IconAttention  Icon = "attention"
)

// Maximum text lengths: a menu wider than the screen is of no use.
const (
	maxEndpoints = 20
	maxText      = 90
	maxTitle     = 120 // of the tooltip; Windows shows 127 characters
	maxNotice    = 250 // of a notification; Windows shows 255
)

// Face returns the icon, and the text shown when the pointer rests on it.
func Face(v View, w words) (Icon, string) {
	icon := IconOff
	if v.Silent {
		icon = IconAttention
	}
	if v.Reachable {
		switch v.Status.State {
		case "connected":
			icon = IconConnected
		case "connecting", "reconnecting":
			icon = IconConnecting
		case "rejected", "unconfigured", Locked:
			icon = IconAttention
		}
		if icon == IconConnected && slices.ContainsFunc(v.Endpoints, func(e Endpoint) bool { return e.State == "failed" }) {
			icon = IconAttention
		}
	}
	title := "adit: " + stateLine(v, w)
	if v.Reachable && v.Status.State == "connected" && len(v.Endpoints) > 0 {
		title += "\n" + v.Endpoints[0].PublicURL
		if more := len(v.Endpoints) - 1; more > 0 {
			title += fmt.Sprintf(" (+%d)", more)
		}
	}
	return icon, clip(title, maxTitle)
}

// stateLine describes the state in a few words, and the reason if something is wrong.
func stateLine(v View, w words) string {
	if !v.Reachable {
		return w.absence(v)
	}
	line, known := w.states[v.Status.State]
	if !known {
		line = v.Status.State
	}
	if v.Status.State == "connected" && v.Status.Relay != "" {
		return line + " · " + v.Status.Relay
	}
	if v.Status.State != "connected" && v.Status.LastError != "" {
		return line + ": " + v.Status.LastError
	}
	return line
}

// Menu returns the menu for v.
func Menu(v View, w words) []Item {
	items := []Item{{Title: clip(stateLine(v, w), maxText), Disabled: true}}
	if v.Note != "" {
		items = append(items, Item{Title: clip(v.Note, maxText), Disabled: true})
	}
	items = append(items, Item{Separator: true})
	locked := v.Reachable && v.Status.State == Locked
	switch {
	case locked: // neither endpoints nor orders: the Web UI asks for the token
	case v.Reachable:
		items = append(items, endpointItems(v, w)...)
	case v.CanStart && !v.Silent:
		items = append(items, Item{Title: w.startDaemon, Action: Action{Kind: StartDaemon}}, Item{Separator: true})
	}
	webUI := Item{Title: w.openWebUI, Disabled: !v.Reachable, Action: Action{Kind: OpenWebUI}}
	if v.Reachable && !v.Status.Configured && !locked {
		webUI.Title = w.enterToken
	}
	items = append(items, webUI)
	if v.Reachable && v.Status.Configured {
		pause := Item{Title: w.pause, Action: Action{Kind: Order, Arg: "pause"}}
		paused := v.Status.State == "paused"
		if paused {
			pause = Item{Title: w.resume, Action: Action{Kind: Order, Arg: "resume"}}
		}
		items = append(items, pause,
			Item{Title: w.reconnect, Disabled: paused, Action: Action{Kind: Order, Arg: "reconnect"}})
	}
	about := []Item{{Title: "adit " + orUnknown(v.Version, w), Disabled: true}}
	if v.Reachable && !locked {
		about = append(about, Item{Title: fmt.Sprintf(w.daemonVersion, orUnknown(v.Status.Version, w)), Disabled: true})
	}
	return append(items,
		Item{Separator: true},
		Item{Title: w.atLogin, Checkable: true, Checked: v.AtLogin, Action: Action{Kind: AtLogin}},
		Item{Title: w.about, Items: about},
		Item{Title: w.quit, Action: Action{Kind: Quit}})
}

// endpointItems lists the endpoints. A click copies the address, since that is what people mostly
// want. The lines have no submenus, because most desktops would open a submenu instead of handling
// the click.
func endpointItems(v View, w words) []Item {
	if len(v.Endpoints) == 0 {
		return []Item{{Title: w.noEndpoints, Disabled: true}, {Separator: true}}
	}
	var items, pages, codes []Item
	for i, e := range v.Endpoints {
		if i == maxEndpoints {
			items = append(items, Item{Title: fmt.Sprintf(w.more, len(v.Endpoints)-i), Action: Action{Kind: OpenWebUI}})
			break
		}
		items = append(items, Item{Title: clip(endpointTitle(e, w), maxText), Disabled: e.PublicURL == "", Action: Action{Kind: CopyURL, Arg: e.PublicURL}})
		if isPage(e.PublicURL) {
			title := clip(e.PublicURL, maxText)
			pages = append(pages, Item{Title: title, Action: Action{Kind: OpenURL, Arg: e.PublicURL}})
			codes = append(codes, Item{Title: title, Action: Action{Kind: OpenWebUI, Arg: qrPlace(e)}})
		}
	}
	for _, sub := range []Item{{Title: w.openURL, Items: pages}, {Title: w.showQR, Items: codes}} {
		switch len(sub.Items) {
		case 0:
		case 1:
			items = append(items, Item{Title: sub.Title, Action: sub.Items[0].Action})
		default:
			items = append(items, sub)
		}
	}
	return append(items, Item{Separator: true})
}

// isPage reports whether a browser can open a public URL: a wildcard has nothing at the URL itself.
func isPage(publicURL string) bool {
	scheme, host, _ := strings.Cut(publicURL, "://")
	return (scheme == "http" || scheme == "https") && !wildcard.Is(host)
}

// endpointTitle returns the address, or the name if that says more, and the state unless all is
// well.
func endpointTitle(e Endpoint, w words) string {
	title := e.PublicURL
	if title == "" {
		title = e.Name
	}
	if e.Local != "" {
		title += " → " + e.Local
	}
	if e.State == "" || e.State == "running" {
		return title
	}
	state := e.State
	if word, known := w.endpointStates[state]; known {
		state = word
	}
	return title + " (" + state + ")"
}

// qrPlace is where the Web UI shows an endpoint with its QR code.
func qrPlace(e Endpoint) string { return "/#/tunnels/qr:" + url.PathEscape(e.TunnelID) }

func orUnknown(s string, w words) string {
	if s == "" {
		return w.unknown
	}
	return s
}

// clip shortens s to n characters on one line, except for a deliberate line break.
func clip(s string, n int) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = visible.Text(strings.Map(blank, line))
	}
	s = strings.Join(lines, "\n")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// blank replaces a control character with a space.
func blank(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}
