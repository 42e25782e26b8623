# no join holds back
# O10: b asks for a seat before its standbys are ready
world standbys=1
start a
pass 3
start b
pass 0.1
