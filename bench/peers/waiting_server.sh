#!/bin/sh
# An MCP server that takes its time and nothing else: `waiting_server.sh SECONDS` answers `initialize` that late.
# A shell, for sixteen interpreters that start at once would keep the processors busy, and that is another measure.

id_of() {
	id=${1#*\"id\":}
	id=${id%%[,\}]*}
}

while read -r line; do
	case $line in
	*'"initialize"'*)
		id_of "$line"
		sleep "$1"
		echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"waiting\",\"version\":\"1\"}}}"
		;;
	*'"tools/list"'*)
		id_of "$line"
		echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[{\"name\":\"wait\",\"inputSchema\":{\"type\":\"object\"}}]}}"
		;;
	esac
done
