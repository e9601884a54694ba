package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"switchboard/internal/testbed"
)

// firstOfVersion is a file that the former version lacks. The version before its first commit is
// the last one whose servers do not count hints from their start, do not say goodbye, and are not
// in the list of leases.
const firstOfVersion = "registry/lua/renew_listed.lua"

// formerVersion has the programs of the former version.
type formerVersion struct{ broker, janitor string }

// buildFormer builds the former version from the history of this clone.
func buildFormer(ctx context.Context, dir string) (formerVersion, error) {
	dir = filepath.Join(dir, "former")
	v := formerVersion{broker: filepath.Join(dir, "bin", "broker"), janitor: filepath.Join(dir, "bin", "janitor")}
	revision, err := formerRevision(ctx)
	if err != nil {
		return v, err
	}
	if err := checkOut(ctx, revision, filepath.Join(dir, "src")); err != nil {
		return v, err
	}
	err = testbed.Build(ctx, "-C", filepath.Join(dir, "src"), "-o", filepath.Dir(v.broker)+string(filepath.Separator), "./cmd/broker", "./cmd/janitor")
	if err != nil {
		err = fmt.Errorf("at %s: %w", revision, err)
	}
	return v, err
}

// formerRevision returns the revision of the former version.
func formerRevision(ctx context.Context) (string, error) {
	first, err := git(ctx, "log", "--diff-filter=A", "--format=%H", "--", ":/"+firstOfVersion)
	if err != nil {
		return "", err
	}
	shallow, err := git(ctx, "rev-parse", "--is-shallow-repository")
	if err != nil {
		return "", err
	}
	lines := strings.Fields(string(first))
	if len(lines) == 0 || strings.TrimSpace(string(shallow)) == "true" {
		return "", errors.New("this clone has no history to build the former version from; run git fetch --unshallow")
	}
	return lines[len(lines)-1] + "^", nil
}

// checkOut writes the files of a revision into a new directory. It leaves the clone as it is.
func checkOut(ctx context.Context, revision, dir string) error {
	root, err := git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	archive, err := git(ctx, "-C", strings.TrimSpace(string(root)), "archive", revision)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	extract := exec.CommandContext(ctx, "tar", "-x", "-C", dir)
	extract.Stdin = bytes.NewReader(archive)
	if out, err := extract.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", extract.Args, err, out)
	}
	return nil
}

func git(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("%v: %w\n%s", cmd.Args, err, failed.Stderr)
	}
	return out, err
}

// mixVersions kills a broker of the former version, and starts one of this version in its place.
// Then it rolls a broker of this version back, and upgrades the last one of the former version.
func mixVersions(ctx context.Context, tb *bed) error {
	first, upgraded, rolledBack := tb.victim(), tb.survivors()[0], tb.survivors()[1]
	former, current := first.Path, rolledBack.Path
	tb.recordFault()
	first.Kill()
	if err := tb.awaitGhostsGone(ctx); err != nil {
		return err
	}
	first.Path, rolledBack.Path, upgraded.Path = current, former, current
	if err := first.Start(ctx); err != nil {
		return err
	}
	for _, b := range []*testbed.Broker{rolledBack, upgraded} {
		if err := tb.awaitBeats(ctx, 2); err != nil {
			return err
		}
		tb.logf("%s gets the other version", b.Name)
		if err := b.Restart(ctx); err != nil {
			return err
		}
	}
	return tb.awaitBeats(ctx, 2)
}

// useFormer has two of three brokers, the victim among them, and the janitor run the former
// version.
func (tb *bed) useFormer(v formerVersion) {
	tb.victim().Path, tb.survivors()[0].Path = v.broker, v.broker
	tb.janitor.Path = v.janitor
}
