# a node that is done does not hear the verdict
# L9: no rest 5.00 s after no fault, at most 4.1 s: round 0 complete, closed SUCCEEDED [a:done]
world nodes=1 max=1
