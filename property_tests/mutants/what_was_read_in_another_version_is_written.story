# what was read in another version is written
# O16: b#1 does not write what the others and it propose, as it has read in this version
world min=3 helping=1
start a
pause-heart a 10
