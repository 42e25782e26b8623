# a node that cannot start ends a job whose world stands without it
# O6: a#2 closes a job that has its minimum without it
world min=3
start a
start b
start c
start-unable a
