# who is done is not called back
# V2: a watch: done in a round that has not begun: a#1
world max=2
start c
pass 1
crash c
