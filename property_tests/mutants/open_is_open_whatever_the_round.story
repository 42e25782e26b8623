# open is open whatever the round
# L19: b#1 is fed Shown, and remembers otherwise: spans: {<Fact.OPEN: 'the round is open'>: (True, 0.004), <Fact.QUORUM: 'the open round has its minimum'>: ((1, 6), 8.108000203)}, not {<Fact.OPEN: 'the round is open'>: (True, 8.108000203), <Fact.QUORUM: 'the open round has its minimum'>: ((1, 6), 8.108000203)}
world nodes=4 max=4 fence=3
start a
start b
pass 1
slow b 1
start c
pass 2
cut-in a 5
pass 5
