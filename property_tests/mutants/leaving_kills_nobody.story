# leaving kills nobody
# L9: no rest 17.00 s after drain, hang, at most 16.4 s: round 1 complete [a:in]
world nodes=2 max=2
start a
start b
pass 1
hang b
drain b
