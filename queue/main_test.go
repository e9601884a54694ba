package queue

import (
	"os"
	"testing"

	"switchboard/internal/redistest"
)

// The servers of all tests, started once; every test has a prefix of its own.
var (
	server  *redistest.Server
	cluster *redistest.Cluster
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m, &server, &cluster)) }
