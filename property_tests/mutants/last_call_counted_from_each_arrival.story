# last call counted from each arrival
# L19: a#1 is fed Pushed, and remembers otherwise: spans: {<Fact.OPEN: 'the round is open'>: (0, 0.004), <Fact.QUORUM: 'the open round has its minimum'>: ((0, 2), 0.006)}, not {<Fact.OPEN: 'the round is open'>: (0, 0.004), <Fact.QUORUM: 'the open round has its minimum'>: ((0, 2), 0.004)}
world
start a
start b
