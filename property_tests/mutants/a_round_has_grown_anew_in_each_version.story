# a round has grown anew in each version
# L19: a#1 is fed Shown, and remembers otherwise: spans: {<Fact.GROWN: 'the complete round began by an upscale'>: (7, 2.0039999999999996)}, not {<Fact.GROWN: 'the complete round began by an upscale'>: (7, 2.002)}
world nodes=2 max=2 give_up=2 last_call=0
start a
start b
pass 2
advance a
