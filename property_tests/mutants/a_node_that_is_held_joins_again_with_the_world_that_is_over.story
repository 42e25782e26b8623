# a node that is held joins again with the world that is over
# G10: remembers (World(id=WorldId(life=Life(nonce='b@40', epoch=1), round=0), nodes=(Node(slot='a', incarnation=1), Node(slot='b', incarnation=1)), profiles=(Profile(endpoint=Endpoint(address='a', port=2), local_world_size=1, role='default', host='a', labels=(), program='', content='', link_port=0, party=None, serves_store=None), Profile(endpoint=Endpoint(address='b', port=2), local_world_size=1, role='default', host='b', labels=(), program='', content='', link_port=0, party=None, serves_store=None)), failures=0, policy='2 by a', generation=Generation(job='b@40', round=0)), None, None) and workers [] on its way into a world: HELD + Over(round=0, why=<Why.FENCED: 'fenced'>, by=Node(slot='a', incarnation=1), at=19105.641500803, generation=Generation(job='b@40', round=0)) -> JOINING: (Join(alive=None),)
world nodes=2 min=2 max=2 seed=1 fence=3
start a
outage 5
pass 5
