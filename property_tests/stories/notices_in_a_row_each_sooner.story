# Found by L11, six nodes with segments (run 500 of seed 31): a node writes each sooner notice of its own, beside what a round takes. The judge
# counted them.
world nodes=5 max=2 seed=3520754530 unlike=3 grace=1 checks=1 standbys=0.3
start a
start b
start c
start d
start e
pass 0.3
notice e 30
find-unfit e 10
find-unfit e 3
