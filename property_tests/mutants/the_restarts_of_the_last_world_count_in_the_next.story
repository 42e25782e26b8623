# the restarts of the last world count in the next
# G10: begins a world with 1 restarts: MOVING + Ready(world=World(id=WorldId(life=Life(nonce='b@2', epoch=1), round=1), nodes=(Node(slot='b', incarnation=1), Node(slot='a', incarnation=1)), profiles=(Profile(endpoint=Endpoint(address='b', port=4), local_world_size=1, role='default', host='b', labels=(), program='', content='', link_port=0, party=None, serves_store=None), Profile(endpoint=Endpoint(address='a', port=2), local_world_size=1, role='default', host='a', labels=(), program='', content='', link_port=0, party=None, serves_store=None)), failures=0, policy='', generation=Generation(job='b@2', round=0)), at=7.160000203000002) -> RUNNING: (Move(world=World(id=WorldId(life=Life(nonce='b@2', epoch=1), round=1), nodes=(Node(slot='b', incarnation=1), Node(slot='a', incarnation=1)), profiles=(Profile(endpoint=Endpoint(address='b', port=4), local_world_size=1, role='default', host='b', labels=(), program='', content='', link_port=0, party=None, serves_store=None), Profile(endpoint=Endpoint(address='a', port=2), local_world_size=1, role='default', host='a', labels=(), program='', content='', link_port=0, party=None, serves_store=None)), failures=0, policy='', generation=Generation(job='b@2', round=0))),)
world nodes=2 max=2 alone=1
start a
start b
cut-out a 5
pass 5
fail b
