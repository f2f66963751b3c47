// Command pack builds adit for every platform on one Linux machine and produces what people
// install: archives, Linux packages, Windows installers and the macOS package, with checksums, a
// bill of materials and signatures.
//
//	go run ./build/pack            everything, into dist
//	go run ./build/pack -only deb  only the kind named: archive, deb, rpm, apk, archlinux, nsis, msi, pkg
//
// The same sources give the same bytes: timestamps are the commit's, and nothing from the build
// machine is included. Signatures are the one exception; they are omitted unless a certificate is
// given.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// kinds are the things that can be made, in the order of making.
var kinds = []string{"archive", "deb", "rpm", "apk", "archlinux", "nsis", "msi", "pkg"}

// packer is one run of pack.
type packer struct {
	root    string // of the sources
	out     string // where the results go
	work    string // temporary files
	program string // the package to build
	release release
	only    []string
	arches  []string
	sign    signing
	quick   bool // compress little or not at all

	mu   sync.Mutex
	made []string // guarded by mu
}

// release is the release to build.
type release struct {
	Version string // as semantic versioning has it, without v
	Commit  string
	Time    time.Time
}

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		log.Print("pack: ", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("pack", flag.ContinueOnError)
	out := flags.String("out", "dist", "where the results go")
	only := flags.String("only", "", "make only these, separated by commas: "+strings.Join(kinds, ", "))
	arches := flags.String("arch", strings.Join(architectures, ","), "architectures")
	version := flags.String("version", "", "the version, instead of what git says")
	program := flags.String("program", ".", "the package to build")
	quick := flags.Bool("quick", false, "compress little or not at all, for tests")
	var sign signing
	sign.flags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := findRoot()
	if err != nil {
		return err
	}
	p := &packer{root: root, out: *out, program: *program, only: kinds, sign: sign, quick: *quick}
	if p.arches, err = parseArches(*arches); err != nil {
		return err
	}
	if *only != "" {
		p.only = strings.Split(*only, ",")
		for _, kind := range p.only {
			if !slices.Contains(kinds, kind) {
				return fmt.Errorf("-only %s: it may name %s", kind, strings.Join(kinds, ", "))
			}
		}
	}
	if p.out, err = filepath.Abs(*out); err != nil {
		return err
	}
	if p.release, err = describe(ctx, root, *version); err != nil {
		return err
	}
	if p.work, err = os.MkdirTemp("", "adit-pack-"); err != nil {
		return err
	}
	defer os.RemoveAll(p.work)
	return p.all(ctx)
}

func (p *packer) all(ctx context.Context) error {
	log.Printf("adit %s (%s, %s)", p.release.Version, p.release.Commit, p.release.Time.Format(time.RFC3339))
	if err := os.MkdirAll(p.out, 0o755); err != nil {
		return err
	}
	if err := p.prepare(ctx); err != nil {
		return err
	}
	var steps []func(context.Context) error
	for _, step := range []struct {
		kinds []string
		make  func(context.Context) error
	}{
		{[]string{"archive"}, p.archives},
		{[]string{"deb", "rpm", "apk", "archlinux"}, p.linuxPackages},
		{[]string{"nsis", "msi"}, p.windowsInstallers},
		{[]string{"pkg"}, p.macPackage},
	} {
		if !slices.ContainsFunc(step.kinds, p.wants) {
			continue
		}
		steps = append(steps, func(ctx context.Context) error {
			begin := time.Now()
			err := step.make(ctx)
			log.Printf("%s: %.1f s", strings.Join(step.kinds, ", "), time.Since(begin).Seconds())
			return err
		})
	}
	if err := together(ctx, steps); err != nil {
		return err
	}
	p.noteSizes()
	if err := p.materials(); err != nil {
		return err
	}
	return p.checksums(ctx)
}

func (p *packer) wants(kind string) bool { return slices.Contains(p.only, kind) }

// add records a result, which the checksums will cover.
func (p *packer) add(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made = append(p.made, name)
}

// findRoot returns the module's folder.
func findRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("ask go for the module: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if mod == "" || mod == os.DevNull {
		return "", errors.New("run it inside the sources")
	}
	return filepath.Dir(mod), nil
}

// describe asks git which release this is. Without a tag, it is a development version.
func describe(ctx context.Context, root, version string) (release, error) {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
		if err != nil {
			return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(out)), nil
	}
	var r release
	commit, err := git("rev-parse", "--short=12", "HEAD")
	if err != nil {
		return r, err
	}
	stamp, err := git("show", "-s", "--format=%cI", "HEAD")
	if err != nil {
		return r, err
	}
	when, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return r, fmt.Errorf("time of the commit: %w", err)
	}
	if version == "" {
		version = "0.1.0-dev." + commit
		if tag, err := git("describe", "--tags", "--exact-match", "--match", "v[0-9]*"); err == nil {
			version = strings.TrimPrefix(tag, "v")
		}
	}
	return release{Version: version, Commit: commit, Time: when.UTC()}, nil
}

// numbers returns the version as three numbers, which is all that some formats can hold.
func (r release) numbers() string {
	core, _, _ := strings.Cut(r.Version, "-")
	core, _, _ = strings.Cut(core, "+")
	parts := strings.Split(core, ".")
	for len(parts) < 3 {
		parts = append(parts, "0")
	}
	return strings.Join(parts[:3], ".")
}

// after returns the numbers of the version with the last one increased by one. If that is not a
// number, it counts as zero.
func (r release) after() string {
	numbers := r.numbers()
	i := strings.LastIndexByte(numbers, '.') + 1
	last, _ := strconv.Atoi(numbers[i:])
	return numbers[:i] + strconv.Itoa(last+1)
}
