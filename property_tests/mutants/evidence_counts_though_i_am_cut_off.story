# evidence counts though I am cut off
# L8: a is thrown out on evidence, and lives
world nodes=2 max=1 fence=3 links=1
start a
start b
pass 2
outage 10
refuse a 1
pass 10
