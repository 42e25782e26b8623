# a silence is told as one that began with its telling
# L12: a#1 tells of a silence since 4.050000002999999, not 2.0
world nodes=1 max=1
start a
cut a 5
pass 5
