# a push from before a sleep is kept until the sleeper has looked
# R14: a restores what it held before it slept
world nodes=2 max=1
start a
start b
pass 1
pause-waiter a 10
start b
pass 6
pause b 10
pause a 7
empty
