# upscale over done
# V9: a watch: a newcomer ended a round in which somebody is done
world
start a
start b
pass 5
succeed b
start b
