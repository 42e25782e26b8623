# a newcomer gives up while a round runs on that began for another
# O19: a#1 watch waits until 56.004, and something is due at 55.01 (now 55.006)
world nodes=4 max=4 upscale=20 join=60
start a
pass 5
start b
pass 30
start c
