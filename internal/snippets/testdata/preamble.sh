# Begins the script of each page. The directory looks like a clone: bin, configs and so on are links.
set -E -o pipefail
trap 'echo "failed: $BASH_COMMAND" >&3' ERR
shopt -s expand_aliases
foreground= # the process that the page runs in a terminal of its own

# await_port waits until a server accepts connections.
await_port() {
	for _ in {1..400}; do
		if (exec 4<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then return 0; fi
		sleep 0.05
	done
	echo "no server on port $1" >&3
	return 1
}

# terminal runs a server in place of the one in the same terminal before it, which the user has ended.
terminal() {
	local port=$1
	shift
	if [ -n "$foreground" ] && [ "$port" = "$http_port" ]; then
		kill "$foreground" && wait "$foreground" || true
		foreground=
	fi
	"$@" >>servers.log 2>&1 &
	if [ "$port" = "$http_port" ]; then foreground=$!; fi
	await_port "$port"
}

make() {
	case "$1" in
	run)
		local ARGS=
		if [ $# -gt 1 ]; then declare "$2"; fi
		# shellcheck disable=SC2086 # ARGS has several words
		terminal "$http_port" bin/broker --config configs/development.yaml $ARGS
		;;
	build) ;; # the test has built the programs
	*) echo "make $1 is not a command of the documentation" && return 1 ;;
	esac
}

# npm installs the client of the repository under its name.
npm() {
	[ "$1" = install ] || return 1
	mkdir -p node_modules
	ln -sfn "$repository/client/js" node_modules/switchboard-client
	ln -sfn "$repository/client/js/node_modules/ws" node_modules/ws
	echo '{}' | tee package.json >package-lock.json
}
