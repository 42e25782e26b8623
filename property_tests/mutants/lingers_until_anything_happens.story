# lingers until anything happens
# L18: c#1 hears Acknowledged, and knows otherwise: lingers
world nodes=4 min=2 max=4 unit=2 seed=185357110 last_call=0.5 links=1
start a
start b
start c
pass 0.02
older 1
