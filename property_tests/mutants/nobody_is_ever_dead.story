# nobody is ever dead
# L10: c#1 died 14.00 s ago: round 0 complete [c:in a:waiting]
world max=1
start c
pass 1
crash c
