# who runs another program takes a seat
# O2: b#1 takes a seat beside another program
world named=1
start a
pass 0.1
start-stranger b
pass 0.1
