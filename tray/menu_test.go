package tray

import (
	"fmt"
	"strings"
	"testing"
)

// draw writes a menu as lines of text: [x] checked, (…) disabled, > its submenu.
func draw(items []Item, indent string) string {
	var b strings.Builder
	for _, it := range items {
		switch {
		case it.Separator:
			b.WriteString(indent + "--\n")
			continue
		case it.Checkable && it.Checked:
			b.WriteString(indent + "[x] " + it.Title)
		case it.Checkable:
			b.WriteString(indent + "[ ] " + it.Title)
		case it.Disabled:
			b.WriteString(indent + "(" + it.Title + ")")
		default:
			b.WriteString(indent + it.Title)
		}
		if it.Action.Kind != None {
			b.WriteString(" = " + strings.TrimSpace(string(it.Action.Kind)+" "+it.Action.Arg))
		}
		b.WriteString("\n" + draw(it.Items, indent+"  > "))
	}
	return b.String()
}

func connected(endpoints ...Endpoint) View {
	return View{
		Reachable: true, Version: "1.0", AtLogin: true, CanStart: true, Endpoints: endpoints,
		Status: Status{Configured: true, State: "connected", Relay: "relay.example:4433", Version: "1.1"},
	}
}

var web = Endpoint{TunnelID: "t1", Name: "web", PublicURL: "https://web.example", Local: "127.0.0.1:8080", State: "running"}

func TestMenuShowsTheState(t *testing.T) {
	tests := []struct {
		name string
		view View
		want string
	}{
		{"no daemon", View{CanStart: true}, `
(The daemon is not running)
--
Start the daemon = start
--
(Open Web UI) = webui
--
[ ] Start at login = login
About
  > (adit (unknown))
Quit = quit
`},
		{"no token", View{Reachable: true, Version: "1.0", Status: Status{State: "unconfigured"}}, `
(No auth token yet)
--
(No endpoints)
--
Enter the auth token… = webui
--
[ ] Start at login = login
About
  > (adit 1.0)
  > (Daemon (unknown))
Quit = quit
`},
		{"one endpoint", connected(web), `
(Connected · relay.example:4433)
--
https://web.example → 127.0.0.1:8080 = copy https://web.example
Open in the browser = open https://web.example
Show QR code = webui /#/tunnels/qr:t1
--
Open Web UI = webui
Pause = order pause
Reconnect = order reconnect
--
[x] Start at login = login
About
  > (adit 1.0)
  > (Daemon 1.1)
Quit = quit
`},
		{"several endpoints", connected(web,
			Endpoint{TunnelID: "t 2", PublicURL: "http://b.example", State: "waiting"},
			Endpoint{TunnelID: "t3", PublicURL: "tcp://c.example:22", State: Down},
			Endpoint{TunnelID: "t3", PublicURL: "tcp://c.example:20000", State: "running"},
			Endpoint{TunnelID: "t4", PublicURL: "https://*.d.example", State: "running"},
			Endpoint{TunnelID: "t4", Name: "new", State: "starting"}), `
(Connected · relay.example:4433)
--
https://web.example → 127.0.0.1:8080 = copy https://web.example
http://b.example (waiting) = copy http://b.example
tcp://c.example:22 (service down) = copy tcp://c.example:22
tcp://c.example:20000 = copy tcp://c.example:20000
https://*.d.example = copy https://*.d.example
(new (starting)) = copy
Open in the browser
  > https://web.example = open https://web.example
  > http://b.example = open http://b.example
Show QR code
  > https://web.example = webui /#/tunnels/qr:t1
  > http://b.example = webui /#/tunnels/qr:t%202
--
Open Web UI = webui
Pause = order pause
Reconnect = order reconnect
--
[x] Start at login = login
About
  > (adit 1.0)
  > (Daemon 1.1)
Quit = quit
`},
		{"paused, after a click that failed", View{Reachable: true, Note: "no browser", Status: Status{Configured: true, State: "paused", Version: "1"}}, `
(Paused)
(no browser)
--
(No endpoints)
--
Open Web UI = webui
Resume = order resume
(Reconnect) = order reconnect
--
[ ] Start at login = login
About
  > (adit (unknown))
  > (Daemon 1)
Quit = quit
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := draw(Menu(tt.view, english), ""); got != tt.want[1:] {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want[1:])
			}
		})
	}
}

func TestMenuOfALockedDaemonLeadsToTheWebUI(t *testing.T) {
	v := View{Reachable: true, CanStart: true, Version: "1.0", Status: Status{State: Locked}}
	want := "(The daemon asks for its Bearer token)\n--\nOpen Web UI = webui\n--\n[ ] Start at login = login\nAbout\n  > (adit 1.0)\nQuit = quit\n"
	if got := draw(Menu(v, english), ""); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if icon, _ := Face(v, english); icon != IconAttention {
		t.Errorf("got icon %s, want %s", icon, IconAttention)
	}
}

func TestMenuStaysShort(t *testing.T) {
	var many []Endpoint
	for i := range 100 {
		many = append(many, Endpoint{TunnelID: fmt.Sprint(i), PublicURL: fmt.Sprintf("https://%d.example/%s", i, strings.Repeat("x", 500)), State: "running"})
	}
	v := connected(many...)
	v.Status.Relay = strings.Repeat("世", 300)
	v.Note = "line\none"
	items := Menu(v, english)
	if len(items) > maxEndpoints+15 {
		t.Errorf("got %d lines", len(items))
	}
	for _, it := range items {
		if n := len([]rune(it.Title)); n > maxText+5 {
			t.Errorf("%q has %d characters", it.Title, n)
		}
	}
	if _, title := Face(v, english); len([]rune(title)) > maxTitle {
		t.Errorf("the tooltip has %d characters", len([]rune(title)))
	}
}

func TestFaceSaysStateReasonAndAddress(t *testing.T) {
	failed := web
	failed.State = "failed"
	tests := []struct {
		name  string
		view  View
		icon  Icon
		title string
	}{
		{"no daemon", View{}, IconOff, "adit: The daemon is not running"},
		{"connected", connected(web, web), IconConnected, "adit: Connected · relay.example:4433\nhttps://web.example (+1)"},
		{"an endpoint failed", connected(failed), IconAttention, "adit: Connected · relay.example:4433\nhttps://web.example"},
		{"reconnecting", View{Reachable: true, Status: Status{State: "reconnecting", LastError: "no route"}}, IconConnecting, "adit: Reconnecting: no route"},
		{"refused", View{Reachable: true, Status: Status{State: "rejected", LastError: "revoked"}}, IconAttention, "adit: The relay refused the auth token: revoked"},
		{"paused", View{Reachable: true, Status: Status{State: "paused"}}, IconOff, "adit: Paused"},
		{"a state of a newer daemon", View{Reachable: true, Status: Status{State: "dreaming"}}, IconOff, "adit: dreaming"},
	}
	for _, tt := range tests {
		icon, title := Face(tt.view, english)
		if icon != tt.icon || title != tt.title {
			t.Errorf("%s: got %s %q, want %s %q", tt.name, icon, title, tt.icon, tt.title)
		}
	}
}

func TestNoticesTellOnlyNews(t *testing.T) {
	lost := View{Reachable: true, Lost: true, Status: Status{State: "reconnecting", LastError: "no route"}}
	second := Endpoint{TunnelID: "t2", PublicURL: "https://b.example", State: "running"}
	tests := []struct {
		name          string
		before, after View
		want          string
	}{
		{"nothing changed", connected(web), connected(web), ""},
		{"connection lost", connected(web), lost, "Connection lost|no route"},
		{"still lost", lost, lost, ""},
		{"connection back, with its addresses", lost, connected(web), "Connected again|relay.example:4433"},
		{"daemon gone", connected(web), View{}, "Connection lost|The daemon is not running"},
		{"daemon here", View{}, connected(web), ""},
		{"new address", connected(web), connected(web, second), "New public address|https://b.example"},
		{"first address", connected(), connected(web), "New public address|https://web.example"},
		{"address gone", connected(web, second), connected(web), ""},
		{"refused", lost, View{Reachable: true, Status: Status{State: "rejected", LastError: "revoked"}}, "The relay refused the auth token|revoked"},
		{"paused by the person", connected(web), View{Reachable: true, Status: Status{State: "paused"}}, ""},
	}
	for _, tt := range tests {
		var got []string
		for _, n := range Notices(tt.before, tt.after, nil, english) {
			got = append(got, n.Title+"|"+n.Body)
		}
		if s := strings.Join(got, ";"); s != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, s, tt.want)
		}
	}
}

func TestWordsFollowTheLanguage(t *testing.T) {
	for _, tt := range []struct {
		languages []string
		want      string
	}{
		{nil, "Quit"},
		{[]string{"C.UTF-8"}, "Quit"},
		{[]string{"zh_CN.UTF-8"}, "退出"},
		{[]string{"zh-Hans"}, "退出"},
		{[]string{"fr_FR", "zh_CN"}, "退出"},
		{[]string{"de"}, "Quit"},
		{[]string{"en_GB", "zh_CN"}, "Quit"},
	} {
		if got := wordsFor(tt.languages).quit; got != tt.want {
			t.Errorf("%v: got %s, want %s", tt.languages, got, tt.want)
		}
	}
	for state, text := range english.states {
		if chinese.states[state] == "" || text == "" {
			t.Errorf("state %s lacks a text", state)
		}
	}
}

func TestEveryIconIsThere(t *testing.T) {
	for _, icon := range []Icon{IconConnected, IconConnecting, IconOff, IconAttention} {
		for _, look := range []Look{LookLight, LookDark, LookAny} {
			iconBytes(icon, look, "png")
			iconBytes(icon, look, "ico")
		}
		iconBytes(icon, "template", "png")
	}
}

func TestMenuShowsTextOfOthersAsWhatItIs(t *testing.T) {
	if got, want := clip("one\ttwo\x1b\nthree\u202eeerht", 80), "one two \nthree\\u202eeerht"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := clip("a\u202ebcdefgh", 5), `a\u2…`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
