# the life that was begun is begun again
# R9: a#1 begins Life(nonce='a@0', epoch=1), which had begun before
world nodes=1 max=1
start a
pass 1
pause a 10
empty
