# who wakes gives up by an unreadable answer from before its sleep
# L19: b#1 is fed NoState, and remembers otherwise: trouble: Trouble(why=<Why.ILLEGAL: 'illegal state'>, text='format 0, this version reads format 1', broken=None), not None
world nodes=2 max=1
start a
pass 1
start-next b
pause b 10
pass 11
