# what a sleeper waits for has lasted while it slept
# L19: a#1 is fed Woke, and remembers otherwise: spans: {<Fact.OPEN: 'the round is open'>: (0, 0.004), <Fact.QUORUM: 'the open round has its minimum'>: ((0, 1), 0.004)}, not {}
world nodes=2 max=2
start a
pass 1
pause a 10
