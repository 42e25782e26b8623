# the last try asks for no heartbeat
# G1: waits for a heartbeat that nobody asks for: HELD + Elapsed(at=15.004000003) -> HELD: ()
world nodes=1 max=1 join=15
start a
pass 0.003
pause-heart a 15
pass 18
