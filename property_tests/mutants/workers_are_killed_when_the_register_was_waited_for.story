# workers are killed when the register was waited for
# G6: kills workers that have time left: LEAVING + Elapsed(at=10.000000003) -> LEAVING: (Signal(signum=9),)
world nodes=2 min=1 max=2 grace=30 overdue=60
start a
start b
pass 5
hang a
outage 20
drain a
pass 20
