# any write signs a world
# V13: a done: the policy of round 0 changed from '2 by b' to '2 by a'
world nodes=2 min=2 max=2 seed=1
