package arch

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// folder is one package folder: what its product files and its tests import.
type folder struct {
	path         string // slash-separated, relative to the root; "." is the root
	imports      []string
	testImports  []string
	doc          bool
	productFiles int
}

func readTree(t *testing.T) []folder {
	t.Helper()
	root := filepath.Join("..", "..")
	byPath := map[string]*folder{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata" || name == "dist" || name == "out") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		f := byPath[rel]
		if f == nil {
			f = &folder{path: rel}
			byPath[rel] = f
		}
		isTest := strings.HasSuffix(name, "_test.go")
		if !isTest {
			f.productFiles++
			f.doc = f.doc || len(strings.TrimSpace(file.Doc.Text())) > 20
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if isTest {
				f.testImports = append(f.testImports, imported)
			} else {
				f.imports = append(f.imports, imported)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var tree []folder
	for _, f := range byPath {
		tree = append(tree, *f)
	}
	slices.SortFunc(tree, func(a, b folder) int { return strings.Compare(a.path, b.path) })
	if len(tree) < 5 {
		t.Fatalf("found %d packages: the walk does not see the tree", len(tree))
	}
	return tree
}

func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// owners says which folders alone may import a library, tests included unless
// they compare with it.
var owners = []struct {
	library string
	folders []string
}{
	{"github.com/pion/dtls", []string{"tunnel/link"}},
	{"github.com/pion/transport", []string{"tunnel/link"}},
	{"github.com/hashicorp/yamux", []string{"tunnel/link"}},
	{"github.com/nats-io", []string{"tunnel/relay/store", "internal/allowance"}}, // there: what memory each system has
	{"github.com/caddyserver/certmagic", []string{"tunnel/relay/certs", "tunnel/relay/store/certificates"}},
	{"github.com/coreos/go-oidc", []string{"tunnel/relay/signin"}},
	{"golang.org/x/oauth2", []string{"tunnel/relay/signin"}},
	{"fyne.io/systray", []string{"tray"}},
	{"github.com/ebitengine/purego", []string{"tray"}},
	{"github.com/kardianos/service", []string{"service"}},
	{"github.com/julienschmidt/httprouter", []string{"localapi", "tunnel/relay"}},
	{"github.com/spf13/cobra", []string{"cli", "build"}},
}

// walls lists what a folder's product files must not import, of ours. The first
// that matches a folder decides.
var walls = []struct {
	folder string
	may    []string // nil: nothing but what is below
}{
	{"tunnel/wire", []string{}},
	{"tunnel/link/farewell", []string{}},
	{"tunnel/link/record", []string{"internal", "tunnel/link/farewell"}},
	{"tunnel/link/budget", []string{}},
	{"tunnel/link/reliable", []string{"internal", "tunnel/link/budget", "tunnel/link/record"}},
	{"tunnel/link/mux", []string{"internal", "tunnel/link/budget"}},
	{"tunnel/link", []string{"internal", "tunnel/link"}},
	{"tunnel/agent/feed", []string{}},
	{"tunnel/agent/inspect", []string{"internal"}},
	{"tunnel/agent/refusal", []string{}},
	{"tunnel/agent/splice", []string{"internal", "tunnel/link"}},
	{"tunnel/agent/origin", []string{"internal", "tunnel/agent/splice"}},
	{"tunnel/agent/definition", []string{"internal", "tunnel/wire", "tunnel/agent/origin", "tunnel/agent/refusal"}},
	{"tunnel/agent/traffic", []string{}},
	{"tunnel/agent/forward", []string{
		"internal", "tunnel/link", "tunnel/wire",
		"tunnel/agent/inspect", "tunnel/agent/origin", "tunnel/agent/refusal", "tunnel/agent/definition", "tunnel/agent/splice", "tunnel/agent/traffic",
	}},
	{"tunnel/agent/visits", []string{"internal", "tunnel/link", "tunnel/wire", "tunnel/agent/definition", "tunnel/agent/refusal", "tunnel/agent/splice", "tunnel/agent/traffic"}},
	{"tunnel/agent/session", []string{"tunnel/link", "tunnel/wire", "tunnel/agent/control"}},
	{"tunnel/agent/diagnosis", []string{"internal", "tunnel/link", "tunnel/wire", "tunnel/agent/control", "tunnel/agent/session", "tunnel/agent/traffic"}},
	{"tunnel/agent/turn", []string{}},
	{"tunnel/agent/state", []string{"internal", "tunnel/wire", "tunnel/agent/definition"}},
	{"tunnel/agent/control", []string{"internal", "tunnel/link", "tunnel/wire", "tunnel/agent/refusal"}},
	{"tunnel/agent", []string{"internal", "tunnel/agent", "tunnel/link", "tunnel/wire"}},
	{"tunnel/relay/store/bucket", []string{}},
	{"tunnel/relay/store/leader", []string{}},
	{"tunnel/relay/store/replica", []string{"internal"}},
	{"tunnel/relay/store/inventory", []string{"internal"}},
	{"tunnel/relay/store/table", []string{"internal", "tunnel/relay/store/bucket", "tunnel/relay/store/leader", "tunnel/relay/store/replica"}},
	{"tunnel/relay/store/events", []string{"tunnel/wire", "tunnel/relay/store/bucket", "tunnel/relay/store/engine"}},
	{"tunnel/relay/store/scope", []string{}},
	{"tunnel/relay/store/claims", []string{"internal", "tunnel/relay/store/bucket", "tunnel/relay/store/table"}},
	{"tunnel/relay/store/certificates", []string{"tunnel/relay/store/bucket"}},
	{"tunnel/relay/store/auditlog", []string{"tunnel/relay/audit", "tunnel/relay/store/bucket", "tunnel/relay/store/engine"}},
	{"tunnel/relay/store/engine/quiet", []string{}},
	{"tunnel/relay/store/engine", []string{"internal", "tunnel/relay/store/bucket", "tunnel/relay/store/engine"}},
	{"tunnel/relay/store/seal", []string{}},
	{"tunnel/relay/store", []string{"internal", "tunnel/wire", "tunnel/relay/policy", "tunnel/relay/audit", "tunnel/relay/store"}},
	{"tunnel/relay/sentence", []string{"internal"}},
	{"tunnel/relay/datadir", []string{"internal"}},
	{"tunnel/relay/proof", []string{"internal/turns"}},
	{"tunnel/relay/roster", []string{}},
	{"tunnel/relay/far", []string{
		"tunnel/wire", "tunnel/relay/claim", "tunnel/relay/edge/routing", "tunnel/relay/nodes", "tunnel/relay/roster", "tunnel/relay/shape", "tunnel/relay/store/claims", "tunnel/relay/store/table",
	}},
	{"tunnel/relay/membership", []string{"internal", "tunnel/wire", "tunnel/relay/nodes", "tunnel/relay/store"}},
	{"tunnel/relay/signature", []string{}},
	{"tunnel/relay/geo", []string{"tunnel/relay/geo", "tunnel/relay/sentence"}},
	{"tunnel/relay/names", []string{"internal", "tunnel/wire", "tunnel/relay/store/claims"}},
	{"tunnel/relay/claim", []string{"internal", "tunnel/wire", "tunnel/relay/names"}},
	{"tunnel/relay/clients", []string{"tunnel/wire", "tunnel/relay/store"}},
	{"tunnel/relay/policies", []string{"tunnel/relay/names", "tunnel/relay/policy", "tunnel/relay/store"}},
	{"tunnel/relay/accesslog", []string{"internal", "tunnel/wire", "tunnel/relay/store/events"}},
	{"tunnel/relay/activity", []string{"tunnel/wire", "tunnel/relay/store"}},
	{"tunnel/relay/ledger", []string{"internal", "tunnel/relay/audit", "tunnel/relay/store/auditlog", "tunnel/relay/store/bucket"}},
	{"tunnel/relay/alerts", []string{"tunnel/wire", "tunnel/relay/audit", "tunnel/relay/sink"}},
	{"tunnel/relay/outlets", []string{"tunnel/wire", "tunnel/relay/audit", "tunnel/relay/sink", "tunnel/relay/store"}},
	{"tunnel/relay/edge/h3", []string{"tunnel/relay/edge/clientcert", "tunnel/relay/edge/visitor"}},
	{"tunnel/relay/edge/message", []string{"tunnel/wire", "tunnel/relay/policy"}},
	{"tunnel/relay/edge/origin", []string{"internal", "tunnel/link", "tunnel/wire", "tunnel/relay/edge/backlog"}},
	{"tunnel/relay/edge/pages", []string{"internal"}},
	{"tunnel/relay/edge/backlog", []string{"internal"}},
	{"tunnel/relay/edge/clientcert", []string{"tunnel/relay/policy"}},
	{"tunnel/relay/edge/clienthello", []string{}},
	{"tunnel/relay/edge/exchange", []string{"internal", "tunnel/link", "tunnel/wire", "tunnel/relay/shape", "tunnel/relay/edge/backlog", "tunnel/relay/edge/message", "tunnel/relay/edge/origin", "tunnel/relay/edge/presence", "tunnel/relay/edge/routing", "tunnel/relay/edge/visitor", "tunnel/relay/edge/webhook", "tunnel/relay/edge/websocket"}},
	{"tunnel/relay/edge/flows", []string{"tunnel/link", "tunnel/wire"}},
	{"tunnel/relay/shape", []string{}},
	{"tunnel/relay/edge/presence", []string{"tunnel/relay/edge/visitor", "tunnel/relay/policy"}},
	{"tunnel/relay/edge/pump", []string{"internal", "tunnel/link", "tunnel/relay/shape", "tunnel/relay/edge/visitor"}},
	{"tunnel/relay/edge/routing", []string{"internal", "tunnel/link", "tunnel/wire", "tunnel/relay/shape", "tunnel/relay/store/claims", "tunnel/relay/edge/flows", "tunnel/relay/edge/message", "tunnel/relay/edge/origin", "tunnel/relay/edge/presence", "tunnel/relay/edge/visitor", "tunnel/relay/edge/webhook"}},
	{"tunnel/relay/edge/udp", []string{"internal", "tunnel/link", "tunnel/wire", "tunnel/relay/shape", "tunnel/relay/edge/routing", "tunnel/relay/edge/visitor"}},
	{"tunnel/relay/edge/visitor", []string{"internal", "tunnel/link", "tunnel/relay/edge/clientcert", "tunnel/relay/edge/clienthello"}},
	{"tunnel/relay/edge/webhook", []string{"internal", "tunnel/relay/policy", "tunnel/relay/signature"}},
	{"tunnel/relay/edge/websocket", []string{"internal"}},
	{"tunnel/relay/edge", []string{"internal", "tunnel/link", "tunnel/wire", "tunnel/relay/policy", "tunnel/relay/shape", "tunnel/relay/signin", "tunnel/relay/store/claims", "tunnel/relay/edge"}},
	{"tunnel/relay/quota", []string{"tunnel/relay/shape", "tunnel/relay/store"}},
	{"tunnel/relay", []string{"internal", "tunnel/relay", "tunnel/link", "tunnel/wire", "frontend"}},
	{"localapi/client", []string{"internal", "localapi/client"}},
	{"localapi", []string{"internal", "localapi", "tunnel/agent", "tunnel/link", "tunnel/wire", "frontend"}},
	{"tray", []string{"internal", "tray", "localapi/client"}},
	{"service", []string{"internal", "service", "localapi", "tunnel/agent", "tunnel/link", "frontend"}},
	{"frontend", []string{}},
	{"cli/localtime", []string{}},
	{"cli/terminal", []string{}},
	{"cli/browser", []string{}},
	{"cli/table", []string{"internal", "cli/terminal"}},
	{"cli/stdio", []string{"internal/textfile", "cli/table", "cli/terminal"}},
	{"cli/command", []string{"internal", "cli/stdio", "cli/terminal"}},
	{"cli/man", []string{"cli/command"}},
	{"cli/daemon", []string{"internal", "localapi/client", "service"}},
	{"cli/completion", []string{"internal", "localapi/client", "cli/daemon"}},
	{"cli/definition", []string{"internal", "localapi/client", "cli/command", "cli/localtime"}},
	{"cli/policy", []string{"internal", "cli/command"}},
	{"cli/guard", []string{"internal", "localapi/client", "cli/command", "cli/policy", "cli/stdio"}},
	{"cli/tunnel", []string{"internal", "localapi/client", "cli/command", "cli/daemon", "cli/definition", "cli/guard", "cli/policy", "cli/stdio", "cli/table"}},
	{"cli/agent", []string{"internal", "localapi/client", "cli/command", "cli/daemon", "cli/definition", "cli/localtime", "cli/stdio", "cli/table", "cli/terminal"}},
	{"cli/requests", []string{"internal", "localapi/client", "cli/command", "cli/daemon", "cli/localtime", "cli/stdio", "cli/table", "cli/terminal", "cli/tunnel"}},
	{"cli/visit", []string{"internal", "localapi/client", "cli/command", "cli/completion", "cli/daemon", "cli/stdio", "cli/table"}},
	{"cli/publish", []string{"internal", "localapi/client", "cli/agent", "cli/command", "cli/daemon", "cli/definition", "cli/guard", "cli/localtime", "cli/requests", "cli/stdio", "cli/terminal"}},
	{"cli/machine", []string{"internal", "localapi/client", "service", "tray", "cli/command", "cli/daemon", "cli/stdio", "cli/terminal"}},
	{"cli/dev", []string{"internal", "localapi/client", "service", "tunnel/relay", "cli/command", "cli/stdio"}},
	{"cli/relay/admin", []string{"tunnel/relay/datadir"}},
	{"cli/relay", []string{"internal", "tunnel/relay", "tunnel/wire", "cli/command", "cli/localtime", "cli/policy", "cli/relay", "cli/stdio", "cli/table"}},
	{"cli", []string{"internal", "cli"}},
}

func TestImportsRunDown(t *testing.T) {
	for _, f := range readTree(t) {
		for _, imported := range f.imports {
			for _, o := range owners {
				if within(imported, o.library) && !slices.ContainsFunc(o.folders, func(dir string) bool { return within(f.path, dir) }) {
					t.Errorf("%s imports %s, which only %v may", f.path, imported, o.folders)
				}
			}
			ours, ok := strings.CutPrefix(imported, "adit/")
			if !ok {
				continue
			}
			if ours == "cli" && f.path != "." && !testOnly(f.path) {
				t.Errorf("%s imports the command line, which only main does", f.path)
			}
			if within(f.path, "internal") && !within(ours, "internal") && !testOnly(f.path) {
				t.Errorf("%s is a leaf and imports %s", f.path, ours)
			}
			for _, wall := range walls {
				if !within(f.path, wall.folder) {
					continue
				}
				if !slices.ContainsFunc(wall.may, func(dir string) bool { return within(ours, dir) }) {
					t.Errorf("%s imports %s: it may import %v", f.path, ours, wall.may)
				}
				break
			}
		}
	}
}

// testOnly reports whether a folder under internal holds nothing but tests and
// their tools, which stand above everything.
func testOnly(path string) bool {
	return within(path, "internal/e2e") || within(path, "internal/bench") || within(path, "internal/desktoptest")
}

func TestAgentAndRelayDoNotKnowEachOther(t *testing.T) {
	for _, f := range readTree(t) {
		all := slices.Concat(f.imports, f.testImports)
		for _, pair := range [][2]string{{"tunnel/agent", "tunnel/relay"}, {"tunnel/relay", "tunnel/agent"}} {
			if !within(f.path, pair[0]) {
				continue
			}
			for _, imported := range all {
				if within(imported, "adit/"+pair[1]) {
					t.Errorf("%s imports %s", f.path, imported)
				}
			}
		}
	}
}

func TestEveryPackageHasADoc(t *testing.T) {
	for _, f := range readTree(t) {
		if f.productFiles > 0 && !f.doc {
			t.Errorf("package %s has no doc", f.path)
		}
	}
}

func TestNoForgottenLeftovers(t *testing.T) {
	words := []string{"TO" + "DO", "FIX" + "ME", "X" + "XX", "not " + "implemented"}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "dist" || name == "out") {
				return filepath.SkipDir
			}
			return nil
		}
		switch filepath.Ext(path) {
		case ".go", ".ts", ".svelte":
		default:
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, word := range words {
			if strings.Contains(string(text), word) {
				t.Errorf("%s has %q", path, word)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
