# who has left is expected back
# V8: the round ended because a#1 left, but it is still seated
world nodes=1 max=1
start a
pass 1
drain a
