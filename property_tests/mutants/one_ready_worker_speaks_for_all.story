# one ready worker speaks for all
# O7
world workers=2
start a
start b
pass 3
notice b 20
pass 20
