# a short last call is waited through
# O16: b#1 proposes Arrive(profile=Profile(endpoint=Endpoint(address='b', port=2), local_world_size=1, role='default', host='b', labels=(), program='', content='', arguments='', link_port=0, party=None, serves_store=None)), and is to write it alone
world last_call=0 helping=1
start a
start b
