# a signal leaves the workers the grace of a restart
# G6: gives its workers more than their grace: RUNNING + Signalled(signum=15, at=1.0) -> LEAVING: (Leave(), Signal(signum=15, spared=None, children=None))
world nodes=1 max=1 shutdown=2
start a
pass 1
drain a
