# a proposal outlives what it was made of
# O16: b#1 acts for others, and has proposed nothing
world min=2 helping=1
