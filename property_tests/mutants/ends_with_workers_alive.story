# ends with workers alive
# G5: ended while workers [0] live: LEAVING + Gone(at=53702.0048) -> ENDED: ()
world nodes=1 max=1 seed=1
start a
pass 2
drain a
