# every end costs a restart
# B2: a watch: 0 failures became 1 by an end because upscale
world nodes=2 max=2 last_call=0
start a
start b
