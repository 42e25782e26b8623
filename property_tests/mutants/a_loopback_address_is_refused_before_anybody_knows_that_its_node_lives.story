# a loopback address is refused before anybody knows that its node lives
# L2: after 105 s without faults: nobody lives; round 0 complete [b:in]
world nodes=2 max=1
start-local b
pass 1
