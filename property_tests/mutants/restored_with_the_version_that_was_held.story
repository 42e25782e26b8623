# restored with the version that was held
# S7: a watch: version 3 after 1
world nodes=2 max=2
start a
pass 2.02
older 1
