# Found by seeds (L7): the loop of a spare stood still during an outage, and went on when the store was back. The spare took all that
# time for the store's silence, and gave up without one more question.
world nodes=2 max=1 join=15
start a
start b
pass 1
outage 10
pass 7.5
pause-loop b 10
