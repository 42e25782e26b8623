# workers are looked at after their signal
# O12: a#1 looks at its workers after their signal, or not at all
world nodes=1 max=1 workers=2
start a
pass 1
fail a
