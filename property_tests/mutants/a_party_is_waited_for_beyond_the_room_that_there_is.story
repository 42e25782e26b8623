# a party is waited for beyond the room that there is
# O16: b#1 proposes Arrive(profile=Profile(endpoint=Endpoint(address='b', port=2), local_world_size=1, role='default', host='b', labels=(), program='', content='', arguments='', link_port=0, party=Party(name='party 0', size=2), serves_store=None)), and is to write it alone
world nodes=2 min=2 max=2 helping=1 party=2
