package tray

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"adit/internal/atomicfile"
)

const iconKind = "png"

// system connects to the person's desktop.
func system(clicks chan<- Action, _ *slog.Logger) (desk, screen, error) {
	return aqua{}, newScreen(clicks), nil
}

// aqua is the desktop of macOS.
type aqua struct{}

func run(stdin, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// notify passes the texts as arguments, so that nothing in them is executed.
func (aqua) notify(n Notice) error {
	const script = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run\n"
	return run(script, "osascript", "-", n.Title, n.Body)
}

func (aqua) open(address string) error { return run("", "open", address) }

func (aqua) copyText(text string) error { return run(text, "pbcopy") }

// panelLook has nothing to decide: a template image takes the bar's colour.
func (aqua) panelLook() Look { return LookAny }

// The label of the launch agent that the package installs for everybody; a person's own agent has
// the same label.
const agentLabel = "dev.adit.tray"

func ownAgent() (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the folder of what starts at login: %w", err)
	}
	return filepath.Join(home, "Library", "LaunchAgents", agentLabel+".plist"), nil
}

const everybodysAgent = "/Library/LaunchAgents/" + agentLabel + ".plist"

func domain() string { return "gui/" + strconv.Itoa(os.Getuid()) }

var disabledAgent = regexp.MustCompile(`"` + regexp.QuoteMeta(agentLabel) + `"\s*=>\s*(true|disabled)`)

func (aqua) startsAtLogin() bool {
	own, err := ownAgent()
	if err != nil {
		return false
	}
	_, ownErr := os.Stat(own)
	_, allErr := os.Stat(everybodysAgent)
	if ownErr != nil && allErr != nil {
		return false
	}
	out, err := exec.Command("launchctl", "print-disabled", domain()).Output()
	return err != nil || !disabledAgent.Match(out)
}

func (aqua) setStartAtLogin(command []string, on bool) error {
	own, err := ownAgent()
	if err != nil {
		return err
	}
	if _, err := os.Stat(everybodysAgent); err == nil {
		verb := "disable"
		if on {
			verb = "enable"
		}
		return run("", "launchctl", verb, domain()+"/"+agentLabel)
	}
	if !on {
		if err := os.Remove(own); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("change what starts at login: %w", err)
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		return fmt.Errorf("change what starts at login: %w", err)
	}
	var text strings.Builder
	text.WriteString(xml.Header + "<plist version=\"1.0\">\n<dict>\n\t<key>Label</key>\n\t<string>" + agentLabel + "</string>\n\t<key>ProgramArguments</key>\n\t<array>\n")
	for _, arg := range command {
		text.WriteString("\t\t<string>")
		if err := xml.EscapeText(&text, []byte(arg)); err != nil {
			return err
		}
		text.WriteString("</string>\n")
	}
	text.WriteString("\t</array>\n\t<key>RunAtLoad</key>\n\t<true/>\n\t<key>LimitLoadToSessionType</key>\n\t<string>Aqua</string>\n</dict>\n</plist>\n")
	return atomicfile.Write(own, []byte(text.String()), 0o644)
}

// languages returns the person's languages, in order of preference.
func languages() []string {
	out, err := exec.Command("defaults", "read", "-g", "AppleLanguages").Output()
	if err != nil {
		return nil
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return strings.ContainsRune("()\", \n\t", r) })
}

// escapeLabel returns s: nothing is special in a menu here.
func escapeLabel(s string) string { return s }
