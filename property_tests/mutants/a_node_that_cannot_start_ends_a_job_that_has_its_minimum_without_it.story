# a node that cannot start ends a job that has its minimum without it
# O6: b#1 closes a job that has its minimum without it
world nodes=2 max=2
start a
start-unable b
