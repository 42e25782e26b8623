# a held agent quits
# G1: not in the table: HELD + Beaten(sent_at=4.006000303, at=4.008000303000001) -> ENDED: ()
world nodes=2 max=2 fence=3
start a
cut-out a 1
pass 1
