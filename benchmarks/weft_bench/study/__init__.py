"""``weft study``: programs compared in many trials, with intervals and tests, and published claims judged.

A study consists of groups. The variants of a group solve the same problem and are compared with one another.
`plan` says what a study is, `studies` lists those that there are, `running` makes the trials, `trials` keeps
them in a file, `statistics` and `summary` evaluate them, `claims` judges, `report` and `plot` show.
"""
