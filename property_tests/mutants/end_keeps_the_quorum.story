# end keeps the quorum
# V11: the quorum of a new round is older than the round: version 1
world nodes=1 max=1
start a
pass 1
crash a
