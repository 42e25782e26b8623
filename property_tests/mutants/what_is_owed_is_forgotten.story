# what is owed is forgotten
# L19: a#1 is fed Unknown, and remembers otherwise: owed: None, not Token(life=Life(nonce='a@0', epoch=1), version=0)
world nodes=1 max=1
start a
late-write a 3
pass 1
drain a
