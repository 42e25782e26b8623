# a question counts as asked when its silence is heard
# L19: c#1 is fed Silent, and remembers otherwise: tried_at: 7.0080004030000005, not 5.0080004030000005
world nodes=3 min=1 max=2 join=60
start a
start b
start c
pass 5
cut-in c 68
pass 3
pause-loop c 80
pass 100
