world nodes=1 max=1 checks=1
start a
unfit a
outage 1
pass 1
drain a
