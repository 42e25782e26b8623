# who completes the round enters alone
# O16: c#1 does not write what the others and it propose, as it has read in this version
world helping=1
start a
start b
start c
