# a newcomer does not wait for its party
# L19: a#1 is fed Pushed, and remembers otherwise: spans: {<Fact.NEWCOMER: 'a newcomer waits with its party and there is room'>: (0, 0.008)}, not {<Fact.PART: 'a newcomer waits without its whole party and there is room'>: (None, 0.008)}
world max=2 last_call=0 party=3
start a
start b
