# an operator cancels in a node's name
# V14: closed as cancelled in an operator's name, by a
world nodes=1
start a
pass 1
cancel
