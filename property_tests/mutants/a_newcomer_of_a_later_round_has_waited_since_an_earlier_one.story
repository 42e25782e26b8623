# a newcomer of a later round has waited since an earlier one
# L19: a#1 is fed Pushed, and remembers otherwise: spans: {<Fact.NEWCOMER: 'a newcomer waits with its party and there is room'>: (True, 76509.559400403)}, not {<Fact.NEWCOMER: 'a newcomer waits with its party and there is room'>: (True, 76512.614000003)}
world nodes=4 min=2 seed=3868052652 last_call=0 standbys=0.3
start a
outage 1
cut-out a 8
pass 3.8
start b
late-write b 10
pass 4.641
start c
outage 0.5
pass 1.02
gap a
start d
pass 0.1
drain c
pass 0.1
outage 1
pass 1
