# members stay in at an end
# V10: b#2 join: a#1 are not expected back although their round ended
world nodes=2 min=2 max=2
start b
pass 1
crash b
