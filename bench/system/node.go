package system

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"switchboard/internal/freeport"
	"switchboard/internal/testbed"
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

// startNode installs what the peer in bench/peers/name needs, and starts its server.js with an
// address and more arguments. Its own Node.js is that of its npm packages.
func startNode(ctx context.Context, log io.Writer, name string, ownNode bool, args ...string) (*peer, error) {
	dir, err := installNode(ctx, log, name)
	if err != nil {
		return nil, err
	}
	node := filepath.Join(dir, "node_modules", ".bin", "node")
	if !ownNode {
		if node, err = findProgram("node"); err != nil {
			return nil, err
		}
	}
	addr, err := freeport.Address()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(node, append([]string{filepath.Join(dir, "server.js"), host, port}, args...)...)
	cmd.Env = testbed.Environ("NODE_ENV=production")
	return startPeer(ctx, name, addr, cmd)
}
