# a round has grown whatever it began for
# L19: a#1 is fed Pushed, and remembers otherwise: spans: {<Fact.GROWN: 'the complete round began by an upscale'>: (1, 6.0160005030000026)}, not {}
world nodes=2 min=2 max=2
start a
pause-heart a 10
