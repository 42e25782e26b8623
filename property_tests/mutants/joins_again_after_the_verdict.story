# joins again after the verdict
# G2: joins a job that is over: STOPPING + Reaped(at=1.0059999999999996) -> JOINING: (Join(alive=None),)
world nodes=1 max=1
start a
pass 1
cancel
pass 1
