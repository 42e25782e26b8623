# an echo ends no round
# G4: an echo that ends no round: STOPPING + Elapsed(at=4.000500003) -> STOPPING: ()
world nodes=4 min=3 reserves=1 echoes=1
start a
start d
start c
pass 1
crash d
