# nobody gives up
# B6: b watch: open with 1 fruitless rounds of 1 in a row
world nodes=2 min=2 max=2 give_up=1
start a
pause-heart a 10
