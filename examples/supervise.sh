#!/bin/sh
# Keep one node of a job: supervise.sh elastic launch ... train.py
# Starts the agent again after exit code 3 (no seat, or no store) and after it was killed, with a pause that grows: from PAUSE_S seconds
# (1) to 300. After an agent that ran for GOOD_S seconds (600) it is the first pause again. Every other code ends the loop, which ends
# with it: 0, 1, 2 and 6 say that no start helps, 4 and 5 that the node's place is on another host.
first=${PAUSE_S:-1} good=${GOOD_S:-600} stopped= pid=
pause=$first
trap 'stopped=1; [ "$pid" ] && kill -TERM "$pid" 2>/dev/null' TERM INT HUP
run() { # Run a command until it ends, with `code`. A signal that comes before its pid is known ends it too.
    pid=
    "$@" &
    pid=$!
    [ "$stopped" ] && kill -TERM "$pid" 2>/dev/null
    wait "$pid"
    code=$?
    while kill -0 "$pid" 2>/dev/null; do # a signal ended the wait, and not the command
        wait "$pid"
        code=$?
    done
    pid=
}
while :; do
    began=$(date +%s)
    run "$@"
    case $code in
        0 | 1 | 2 | 4 | 5 | 6) exit "$code" ;;
    esac
    ended=$code
    [ $(($(date +%s) - began)) -lt "$good" ] || pause=$first
    [ "$stopped" ] && exit "$ended"
    echo "supervise.sh: the agent ended with $ended; it starts again in $pause s" >&2
    run sleep "$pause"
    [ "$stopped" ] && exit "$ended"
    pause=$((pause < 150 ? pause * 2 : 300))
done
