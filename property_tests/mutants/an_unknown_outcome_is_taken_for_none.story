# an unknown outcome is taken for none
# L19: a#1 is fed Unknown, and remembers otherwise: unsure_at: None, not 2.002, owed: None, not Token(life=Life(nonce='a@0', epoch=1), version=0)
world nodes=1 max=1
start a
late-write a 2
pass 1
drain a
