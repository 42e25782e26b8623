# Found by R12, four nodes with a fence (run 1446 of its seed): the store came back as a copy while an answer to a was lost. a asked again after
# 2 s, and until then no heartbeat of its counted, so its fence fell. The judge took it for well.
world max=2 fence=3 reserves=2
start a
start b
outage 1
pass 2
cut-out b 5
start c
lose-reply a
pass 6.3
older 1
pass 5
