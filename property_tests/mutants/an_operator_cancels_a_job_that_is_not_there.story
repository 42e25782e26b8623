# an operator cancels a job that is not there
# V14: operator#1 closes a job that is not there, in an operator's name
world nodes=1 max=1
cancel
