# the barrier does not watch
# L2: after 105 s without faults: nobody lives; round 0 complete, closed SUCCEEDED [a:done b:done]
world nodes=2 min=2 max=2
