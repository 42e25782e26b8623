# Found by S9 strong, four nodes with a fence (run 500 of its seed): a was cut off, and then its agent died. Its workers lived on for 5 s, which is
# longer than the TTL since its last heartbeat. A dead agent stops nobody by its fence; the launcher's workers die with it.
world nodes=2 max=1 fence=3
start a
start b
pass 1
cut-out a 1
pass 1
kill a 5
