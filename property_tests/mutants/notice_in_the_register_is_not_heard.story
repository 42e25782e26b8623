# notice in the register is not heard
# O20: b#1 is shown the notices [Notice(deadline_s=1.0, source='a test')], and tells its group of []
world nodes=2 max=2 seed=5
start a
start b
notice b 1
