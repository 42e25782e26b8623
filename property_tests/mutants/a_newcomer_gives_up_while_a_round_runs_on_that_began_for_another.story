# a newcomer gives up while a round runs on that began for another
# L9: no rest 47.00 s after start, at most 46.8 s: round 1 complete [a:in b:in c:waiting]
world nodes=4 max=4 upscale=20 join=60
start a
pass 5
start b
pass 30
start c
