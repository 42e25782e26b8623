"""What an agent, or a rank, writes down about each step: its value (`steps`), that value as JSON (`plain`), the `lines`.

Production imports this room; the laboratory (`properties`, `replay`, `sim`) reads what stands here.
"""
