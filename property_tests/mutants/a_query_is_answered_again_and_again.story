# a query is answered again and again
# O20: a#1 answers a query twice
world nodes=1 max=1
