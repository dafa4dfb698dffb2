"""Corpora of any size: text read, worked on and written shard by shard, on one machine or on many.

A `Job` says what is done with each line. `run_job` cuts the input into shards of consecutive lines, has them worked on
in this process, in worker processes or on a Ray cluster, and writes the results in order. What a line gives depends on
its shard alone, so that the output has the same bytes however many workers there are and however often it was begun
again.
"""
