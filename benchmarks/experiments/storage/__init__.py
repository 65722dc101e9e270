"""drapps experiment storage: shards, codecs, the compression manager and the planner, beside what others do.

storage_command.py is the command.  shard_speed.py: shards and plain files.  codec_data.py makes the arrays that
codec_peers.py compresses, by codec_child.py in the environment of each library.
"""
