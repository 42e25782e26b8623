# spans outlive their fact
# L19: d#1 is fed Shown, and remembers otherwise: spans: {<Fact.OPEN: 'the round is open'>: (1, 8.021999999999998), <Fact.QUORUM: 'the open round has its minimum'>: ((1, 5), 8.021999999999998)}, not {<Fact.OPEN: 'the round is open'>: (1, 10.023999999999997), <Fact.QUORUM: 'the open round has its minimum'>: ((1, 5), 10.023999999999997)}
world nodes=4 last_call=0.5 fence=3
start a
start b
pass 1
cut-in a 8
pass 1
start c
pass 6.02
slow c 1
start d
late-write d 2
pass 10
