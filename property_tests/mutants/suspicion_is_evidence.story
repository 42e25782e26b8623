# suspicion is evidence
# L8: b is thrown out on evidence, and lives
world nodes=2 max=1 links=1
start a
start b
pass 1
unlink a
pass 1
