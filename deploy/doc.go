// Package deploy has what operators need to run Switchboard: configurations of load balancers, a
// container image, a Compose file, systemd units, packages, a Helm chart and a Grafana board. It
// has no code apart from the tests of these files.
//
// The tests with the build tag "deploy" run the real programs: HAProxy, nginx, buildah, dpkg, Helm
// and GoReleaser. `make test-deploy` runs them.
package deploy
