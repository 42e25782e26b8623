# a node without workers heeds no notice
# O8: a#1 is gone 1.009 s after its deadline: LEAVING + Reaped(at=2.0090000029999993) -> ENDED: ()
world nodes=2 max=2
start a
notice a 1
