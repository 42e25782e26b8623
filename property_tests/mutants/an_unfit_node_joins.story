# an unfit node joins
# G7: joins without the word of its check: CHECKING + Checked(is_fit=False, text='the check found the node unfit', at=0.01) -> JOINING: (Join(),)
world nodes=1 max=1 checks=1
start a
unfit a
pass 1
