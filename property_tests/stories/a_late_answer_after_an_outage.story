# Found by L9, two nodes on leases (run 1276 of its seed): an outage ended just after the node had asked, and the answer to its next question was
# late. Each pause lasts for a heartbeat's interval, and the bound had one of them.
world nodes=1 max=1 interval=20 join=600
outage 160
pass 10
start a
late-reply a 2
pass 1500
