package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// prepare builds each program that any of the results needs, once and before everything else, so
// that the remaining steps can run in parallel.
func (p *packer) prepare(ctx context.Context) error {
	begin := time.Now()
	systems := []string{"linux"} // the bill of materials is read from it
	for _, need := range []struct {
		system string
		kinds  []string
	}{
		{"windows", []string{"archive", "nsis", "msi"}},
		{"darwin", []string{"archive", "pkg"}},
	} {
		if slices.ContainsFunc(need.kinds, p.wants) && len(p.archesOn(need.system)) > 0 {
			systems = append(systems, need.system)
		}
	}
	type platform struct{ system, arch string }
	// The program for this machine prints its completions and manual pages.
	platforms := []platform{{hostOS, hostArch}}
	for _, system := range systems {
		for _, arch := range p.archesOn(system) {
			if one := (platform{system, arch}); !slices.Contains(platforms, one) {
				platforms = append(platforms, one)
			}
		}
	}
	// Two at a time: the compiler uses all of the machine's processors by itself, but linking,
	// which is most of the work if little has changed, uses one.
	var builders sync.WaitGroup
	next, errs := make(chan platform), make([]error, 2)
	for i := range errs {
		builders.Go(func() {
			for one := range next {
				if errs[i] == nil {
					errs[i] = p.prepareOne(ctx, one.system, one.arch)
				}
			}
		})
	}
	for _, one := range platforms {
		next <- one
	}
	close(next)
	builders.Wait()
	log.Printf("programs for %s: %.1f s", strings.Join(systems, ", "), time.Since(begin).Seconds())
	return errors.Join(errs...)
}

// prepareOne builds one program. Those for Windows are signed here, so that archives and installers
// contain the same files.
func (p *packer) prepareOne(ctx context.Context, system, arch string) error {
	if system != "windows" {
		return p.build(ctx, system, arch)
	}
	if err := p.buildWindows(ctx, arch); err != nil {
		return err
	}
	exe := p.exe(system, arch)
	tray, err := p.trayProgram(exe)
	if err != nil {
		return err
	}
	for _, file := range []string{exe, tray} {
		if err := p.sign.windows(ctx, p, file); err != nil {
			return fmt.Errorf("windows/%s: %w", arch, err)
		}
		// The MSI's cabinet records it.
		if err := os.Chtimes(file, p.release.Time, p.release.Time); err != nil {
			return err
		}
	}
	return nil
}

// together runs all steps concurrently and returns their errors.
func together(ctx context.Context, steps []func(context.Context) error) error {
	errs := make([]error, len(steps))
	var running sync.WaitGroup
	for i, step := range steps {
		running.Go(func() { errs[i] = step(ctx) })
	}
	running.Wait()
	return errors.Join(errs...)
}
