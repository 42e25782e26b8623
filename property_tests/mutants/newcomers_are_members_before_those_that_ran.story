# newcomers are members before those that ran
# V23: b#1 ran in the last world and wait, and others have taken their places
world nodes=4 min=2 max=4 unit=2
start a
start b
start c
pass 5
start c
