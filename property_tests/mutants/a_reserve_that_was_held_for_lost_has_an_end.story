# a reserve that was held for lost has an end
# L2: b has found no world, but all has been well for long
world nodes=2 max=2 backend=lease interval=20 join=600 overdue=240 fence=60 reserves=2
start a
start b
pass 1
cut-out b 160
pass 100
