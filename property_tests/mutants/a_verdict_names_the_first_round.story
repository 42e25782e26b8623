# a verdict names the first round
# O6: a#1 closes the job in the name of a#1, or of round 0
world nodes=1 max=1
start a
pass 1
unstartable a
kill-worker a
pass 1
