package system

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// installNode installs Node.js, and the npm packages of the peer in bench/peers/name, if they are
// missing. It returns the directory of the peer. The log may be nil.
func installNode(ctx context.Context, log io.Writer, name string) (dir string, err error) {
	dir, err = moduleFile(ctx, "bench", "peers", name)
	if err != nil {
		return "", err
	}
	_, nodeErr := findProgram("node")
	_, npmErr := findProgram("npm")
	if errors.Join(nodeErr, npmErr) != nil {
		if err := installDebian(ctx, log, "nodejs", "npm"); err != nil {
			return "", err
		}
	}
	// npm writes this file last.
	if _, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json")); err == nil {
		return dir, nil
	}
	logf(log, "installing the npm packages of %s", dir)
	// Some versions of npm refuse `npm ci` with a lock file that they have written. Without --no-save,
	// install would change the lock file.
	return dir, runCommand(exec.CommandContext(ctx, "npm", "install", "--no-save", "--silent", "--no-audit", "--no-fund", "--prefix", dir))
}
