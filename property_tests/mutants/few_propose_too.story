# few propose too
# O16: a#1 proposes Done(round=0), and is to write it alone
world nodes=1 max=1 helping=1
