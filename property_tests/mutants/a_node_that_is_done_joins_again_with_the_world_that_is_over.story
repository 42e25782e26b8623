# a node that is done joins again with the world that is over
# G10: remembers (World(id=WorldId(life=Life(nonce='b@0', epoch=1), round=0), nodes=(Node(slot='a', incarnation=1), Node(slot='b', incarnation=1)), profiles=(Profile(endpoint=Endpoint(address='a', port=2), local_world_size=1, role='default', host='a', labels=(), program='', content='', link_port=0, party=None, serves_store=None), Profile(endpoint=Endpoint(address='b', port=2), local_world_size=1, role='default', host='b', labels=(), program='', content='', link_port=0, party=None, serves_store=None)), failures=0, policy='', generation=Generation(job='b@0', round=0)), None, None) and workers [] on its way into a world: BARRIER + Over(round=0, why=<Why.LOST: 'lost'>, by=Node(slot='a', incarnation=1), at=7.008000503000002, generation=Generation(job='b@0', round=0)) -> JOINING: (Join(alive=None),)
world nodes=5 max=2
start b
pass 1
kill b 1
