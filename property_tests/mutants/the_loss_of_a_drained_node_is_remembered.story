# the loss of a drained node is remembered
# B8: ['a#1'] are remembered as lost after Arrive(profile=Profile(endpoint=Endpoint(address='a', port=2), local_world_size=1, role='default', host='a', labels=(), program='', content='', arguments='', link_port=0, party=None, serves_store=None)) of a#2
world nodes=1 max=1
start a
pass 1
crash a
drain-seat 1
